import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { createClient } from "../../src/sdk/index.ts";
import { artefactFolder } from "../support/artefact.ts";
import { clientOf } from "../support/clients.ts";
import { findOrInstall, isExecutable, pathFolders } from "../support/debian-programs.ts";
import { substitute } from "../support/documented-configuration.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { freePort, LocalServer } from "../support/local-server.ts";
import { proxyBinary } from "../support/proxy-binaries.ts";
import { readText, root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { createRedisDatabase } from "../support/test-redis.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { readDockerfile } from "./manifests.ts";

/** Only root can become another user. */
const isRoot = process.getuid?.() === 0;
/** Whether this machine lets root make file systems read-only for one process. */
const canProtect = isRoot && spawnSync("unshare", ["--mount", "true"]).status === 0;

/** A command that runs as this user, in a file system that is read-only except for one folder, where that is possible. */
function locked(command: readonly string[], writable: string, { uid, gid }: { uid: number; gid: number }) {
  const asUser = ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups", "--no-new-privs", ...command];
  if (!canProtect) return asUser as [string, ...string[]];
  const protect = `mount --bind '${writable}' '${writable}' && mount -o remount,bind,ro / && exec "$@"`;
  return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", protect, "sh", ...asUser] as [
    string,
    ...string[],
  ];
}

/** The folders of the image, at another place. */
function layOutImage(place: string): void {
  const { copied, user, volume } = readDockerfile();
  mkdirSync(place, { recursive: true });
  chmodSync(place, 0o755);
  for (const [from, to] of copied) {
    const source = from === "dist" ? join(artefactFolder(), "dist") : join(root, from);
    const isFolder = statSync(source).isDirectory();
    cpSync(source, join(place, to, isFolder ? "" : (from.split("/").at(-1) as string)), { recursive: true });
  }
  for (const entry of readdirSync(place, { recursive: true, withFileTypes: true })) {
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o444);
  }
  mkdirSync(join(place, volume), { mode: 0o700 });
  chownSync(join(place, volume), user.uid, user.gid);
}

describe.runIf(isRoot)("the image", () => {
  it("serves as its user, writes to its volume only, is healthy and stops in order", async () => {
    const { user, environment, command, healthCheck, volume } = readDockerfile();
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    const place = join(folder, "image");
    layOutImage(place);
    const there = (words: readonly string[]) =>
      words.map((word) => (word === "node" ? process.execPath : word.startsWith("/") ? join(place, word) : word));
    const port = String(await freePort());
    const env = { ...environment, PORT: port, LATCHKEY_DATA_DIR: join(place, volume), HOME: "/" };
    const latchkey = await startLatchkey(env, locked(there(command), join(place, volume), user));

    const rootKey = readFileSync(join(place, volume, "root-key"), "utf8").trim();
    const client = createClient({ baseUrl: latchkey.baseUrl, rootKey });
    const { key } = await client.keys.createKey({ apiId: "demo" });
    expect(await client.keys.verifyKey({ key })).toMatchObject({ valid: true });

    const [node = "", ...args] = there(healthCheck);
    const isHealthy = () => spawnSync(node, args, { ...user, env: { PORT: port } }).status === 0;
    expect(isHealthy()).toBe(true);
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    expect(isHealthy()).toBe(false);
  });
});

describe("the unit of systemd", () => {
  const unit = "deploy/systemd/latchkey.service";

  it("is locked up, and is a unit", () => {
    const analyze = systemdAnalyze();
    const exposure = execFileSync(analyze, ["security", "--offline=true", unit], { cwd: root, encoding: "utf8" });
    expect(Number(/exposure level for latchkey.service: ([\d.]+)/.exec(exposure)?.[1])).toBeLessThan(2);
    // The program it names is not installed here. It must be the only complaint.
    const { stderr } = spawnSync(analyze, ["verify", unit], { cwd: root, encoding: "utf8" });
    const complaints = stderr.split("\n").filter((line) => line.includes("latchkey.service"));
    expect(complaints).toEqual([expect.stringContaining("/opt/latchkey/bin/latchkey is not executable")]);
  });

  it.runIf(isRoot)("starts with its environment and user, takes over settings on reload, and stops", async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    const text = readText(unit);
    const [, words = ""] = /^Environment=(.*)$/m.exec(text) ?? [];
    const paths = {
      "/etc/latchkey": folder,
      "%S/latchkey": join(folder, "state"),
      "%C/latchkey": join(folder, "cache"),
    };
    const environment = Object.fromEntries(
      substitute(words, paths)
        .split(" ")
        .map((word) => word.split("=") as [string, string]),
    );
    const user = { uid: 65_531, gid: 65_531 };
    for (const name of ["state", "cache"]) {
      mkdirSync(join(folder, name), { mode: 0o700 });
      chownSync(join(folder, name), user.uid, user.gid);
    }
    const settings = join(folder, "latchkey.env");
    writeFileSync(settings, `LATCHKEY_ROOT_KEY=${testRootKey}\n`, { mode: 0o640 });
    chownSync(settings, 0, user.gid);
    expect(text).toMatch(/^ExecStart=\/opt\/latchkey\/bin\/latchkey serve$/m);
    const command = [process.execPath, join(artefactFolder(), "dist/latchkey.js"), "serve"];
    chmodSync(artefactFolder(), 0o755);
    const latchkey = await startLatchkey(environment, locked(["setsid", ...command], join(folder, "state"), user));

    const [, signal = ""] = /^ExecReload=\/bin\/kill -(\w+) \$MAINPID$/m.exec(text) ?? [];
    writeFileSync(settings, `LATCHKEY_ROOT_KEY=${testRootKey}\nLATCHKEY_CALLS_MAX=77\n`);
    latchkey.kill(`SIG${signal}` as NodeJS.Signals);
    await vi.waitFor(() => expect(latchkey.stderr()).toMatch(/took over new settings/));
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
  });
});

const nginx = proxyBinary("nginx");

/** nginx with the configuration of the compose file, on ports of its own. */
class ComposedNginx extends LocalServer {
  static async start(program: string, replicas: readonly LatchkeyProcess[], grpcPort: number): Promise<ComposedNginx> {
    const server = new ComposedNginx("composed-nginx");
    const [first, second] = replicas.map(({ baseUrl }) => new URL(baseUrl).host) as [string, string];
    const prepare = () => {
      const configuration = substitute(readText("deploy/compose/nginx.conf"), {
        "latchkey-1:8080": first,
        "latchkey-2:8080": second,
        "listen 8080": `listen 127.0.0.1:${server.port}`,
        "listen 8090": `listen 127.0.0.1:${grpcPort}`,
      });
      const file = join(server.folder, "nginx.conf");
      const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
        (name) => `${name}_temp_path ${join(server.folder, name)};`,
      );
      writeFileSync(file, configuration.replace("access_log off;", `access_log off;\n  ${paths.join("\n  ")}`));
      const globals = `daemon off; pid ${join(server.folder, "pid")}; error_log stderr;`;
      return ["-p", server.folder, "-c", file, "-g", globals];
    };
    await server.launch(program, prepare, async () => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/livez`);
      if (!answer.ok) throw new Error(String(answer.status));
    });
    return server;
  }
}

describe.runIf(hasPostgres && nginx !== undefined)("the compose file", () => {
  it("makes secrets once, with a password that is in the database's address too", async () => {
    const folder = tempFolder();
    cpSync(join(root, "deploy/compose"), folder, { recursive: true });
    const make = () => promisify(execFile)("sh", [join(folder, "make-secrets.sh")]);
    const read = (name: string) => readFileSync(join(folder, "secrets", name), "utf8");
    await make();
    const first = read("root-key");
    await make();
    expect([read("root-key"), first.length]).toEqual([first, 64]);
    expect(read("database-url")).toBe(`postgres://latchkey:${read("database-password")}@postgres:5432/latchkey`);
    expect(statSync(join(folder, "secrets")).mode & 0o777).toBe(0o700);
    // Whoever makes them in a checkout must not publish them.
    const made = "deploy/compose/secrets";
    expect(readText(".gitignore")).toContain(`\n${made}/\n`);
    expect(readText("deploy/docker/Dockerfile.dockerignore")).toContain(`\n${made}\n`);
    expect(JSON.parse(readText("package.json")).files).toContain(`!${made}`);
  });

  it("counts exactly over two replicas behind its nginx, in JSON and gRPC", async () => {
    const [database, REDIS_URL, grpcPort] = [await createTestDatabase(), await createRedisDatabase(), await freePort()];
    const environment = { DATABASE_URL: database, REDIS_URL, LATCHKEY_ROOT_KEY: testRootKey };
    const start = () => startLatchkey({ ...environment, LATCHKEY_DATA_DIR: tempFolder() });
    const replicas = [await start(), await start()];
    const proxy = await ComposedNginx.start(nginx as string, replicas, grpcPort);
    atTestEnd(() => proxy.remove());

    const client = createClient({ baseUrl: `http://127.0.0.1:${proxy.port}`, rootKey: testRootKey });
    const { key } = await client.keys.createKey({ apiId: "demo", remaining: 20 });
    const overGrpc = clientOf("grpc-js", `http://127.0.0.1:${grpcPort}`, testRootKey);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => (i % 2 ? overGrpc : client.keys).verifyKey({ key })),
    );
    expect(answers.filter(({ valid }) => valid)).toHaveLength(20);
  });
});

/** Where `systemd-analyze` is. It reads units without a systemd that runs. */
function systemdAnalyze(): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, "systemd-analyze"))
      .find(isExecutable);
  return findOrInstall({ name: "systemd-analyze", debianPackage: "systemd", find });
}
