import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { damageEveryFourthPage } from "../support/damage-file.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { expireCertificate, makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { expectFound, healthyEnvironment, type PlantedFault, readAnswer, runDoctor } from "./run-doctor.ts";

const isRoot = process.getuid?.() === 0;

let migrated: Promise<Buffer> | undefined;

/** A data folder as a service leaves it. */
async function usedFolder(): Promise<string> {
  migrated ??= migrate(tempFolder());
  const folder = tempFolder();
  writeFileSync(join(folder, "latchkey.db"), await migrated, { mode: 0o600 });
  return folder;
}

async function migrate(folder: string): Promise<Buffer> {
  const { code } = await runLatchkey(["migrate", "up"], { LATCHKEY_DATA_DIR: folder });
  expect(code).toBe(0);
  return readFileSync(join(folder, "latchkey.db"));
}

function internalTls(files: { certificate: string; key: string }): Record<string, string> {
  return { LATCHKEY_INTERNAL_TLS_CERT: files.certificate, LATCHKEY_INTERNAL_TLS_KEY: files.key };
}

/** Everything about the files of a folder that a change would show. */
function filesOf(folder: string) {
  return readdirSync(folder).map((name) => {
    const { size, mtimeMs, mode } = statSync(join(folder, name));
    return { name, size, mtimeMs, mode };
  });
}

const faults: readonly PlantedFault[] = [
  {
    fault: "a secret that everybody can read",
    plant() {
      const file = join(tempFolder(), "root-key");
      writeFileSync(file, testRootKey);
      chmodSync(file, 0o644);
      return { LATCHKEY_ROOT_KEY_FILE: file };
    },
    ...{ id: "file-open-to-others", fix: /^chmod 600 \/\S+\/root-key$/, code: 3 },
  },
  {
    fault: "a data folder that everybody can read",
    plant() {
      const folder = tempFolder();
      chmodSync(folder, 0o755);
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "file-open-to-others", fix: /^chmod 700 /, code: 3 },
  },
  {
    fault: "a file in the place of the data folder",
    plant() {
      const file = join(tempFolder(), "data");
      writeFileSync(file, "", { mode: 0o600 });
      return { LATCHKEY_DATA_DIR: file };
    },
    ...{ id: "data-folder-unusable", fix: "LATCHKEY_DATA_DIR", code: 1 },
  },
  {
    fault: "a damaged data file",
    async plant() {
      const folder = await usedFolder();
      damageEveryFourthPage(join(folder, "latchkey.db"));
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "data-file-damaged", fix: /latchkey restore BACKUP/, code: 1 },
  },
  {
    fault: "a lost data file",
    async plant() {
      const folder = await usedFolder();
      rmSync(join(folder, "latchkey.db"));
      writeFileSync(join(folder, "latchkey.db-state"), "opened\n", { mode: 0o600 });
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "data-file-missing", fix: /latchkey restore BACKUP/, code: 1 },
  },
  {
    fault: "a generated root key that no file has",
    async plant() {
      const folder = await usedFolder();
      const values = `'root_generated', 'digest', 'lk_root_abcd', '["*"]', 0, 0, 1, ''`;
      const columns = "id, digest, start, permissions, created_at_ms, updated_at_ms, version, event_id";
      changeData(folder, `INSERT INTO root_keys (${columns}) VALUES (${values})`);
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "root-key-file-missing", fix: "Replacing the root key", code: 3 },
  },
  {
    fault: "a counter that a clock ahead has charged",
    async plant() {
      const folder = await usedFolder();
      changeData(
        folder,
        `INSERT INTO owners (id, list_id, meta, enabled, has_counter, created_at_ms, updated_at_ms, version, event_id)
          VALUES ('one', 'evt_1', '{}', 1, 1, 1, 1, 1, 'evt_1');
        INSERT INTO counters (subject, remaining, credited, metered_hour) VALUES ('c/one', 5, 6, 1000000)`,
      );
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "spending-ahead", fix: "docs/usage.md#when-the-clock-is-changed", code: 3 },
  },
  {
    fault: "no data where there has to be some",
    plant: () => ({ LATCHKEY_DATA_DIR: join(tempFolder(), "lost"), LATCHKEY_STORE: "existing" }),
    ...{ id: "store-empty", fix: "LATCHKEY_STORE=create", code: 1 },
  },
  {
    fault: "a data file without rows where there has to be data",
    async plant() {
      const LATCHKEY_DATA_DIR = tempFolder();
      expect(await runLatchkey(["migrate", "up"], { LATCHKEY_DATA_DIR })).toMatchObject({ code: 0 });
      chmodSync(join(LATCHKEY_DATA_DIR, "latchkey.db"), 0o600);
      return { LATCHKEY_DATA_DIR, LATCHKEY_STORE: "existing" };
    },
    ...{ id: "store-empty", fix: "LATCHKEY_STORE=create", code: 1 },
  },
  {
    fault: "data of a newer version",
    async plant() {
      const folder = await usedFolder();
      changeData(folder, "INSERT INTO schema_migrations (name, applied_at_ms) VALUES ('9999-of-the-future', 0)");
      return { LATCHKEY_DATA_DIR: folder };
    },
    ...{ id: "schema-too-new", fix: /^Install the version/, code: 1 },
  },
  {
    fault: "a certificate that does not belong to its key",
    plant() {
      const folder = tempFolder();
      const [one, other] = ["one", "other"].map((name) => makeCertificate(folder, name, undefined, undefined, 90));
      return internalTls({ certificate: one?.certificate ?? "", key: other?.key ?? "" });
    },
    ...{ id: "certificate-unusable", fix: /openssl pkey -pubout/, code: 1 },
  },
  {
    fault: "a certificate that has expired",
    plant() {
      const files = makeCertificate(tempFolder(), "expired");
      expireCertificate(files);
      return internalTls(files);
    },
    ...{ id: "certificate-expired", fix: /^Renew/, code: 1 },
  },
  {
    fault: "a certificate that ends soon",
    plant: () => internalTls(makeCertificate(tempFolder(), "soon")),
    ...{ id: "certificate-ends-soon", fix: /^Renew/, code: 3 },
  },
  {
    fault: "a certificate whose chain is broken",
    plant() {
      const folder = tempFolder();
      const [own, stranger] = ["own", "stranger"].map((name) =>
        makeCertificate(folder, name, undefined, undefined, 90),
      );
      const certificate = join(folder, "chain.pem");
      writeFileSync(certificate, [own, stranger].map((each) => readFileSync(each?.certificate ?? "", "utf8")).join(""));
      return internalTls({ certificate, key: own?.key ?? "" });
    },
    ...{ id: "certificate-chain", fix: /^cat own\.pem intermediate\.pem/, code: 3 },
  },
  {
    fault: "a certificate for another address",
    plant: () => ({
      ...internalTls(makeCertificate(tempFolder(), "elsewhere", undefined, "IP:10.0.0.1", 90)),
      LATCHKEY_INTERNAL_HOST: "10.0.0.2",
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
    }),
    ...{ id: "certificate-names", fix: "subjectAltName=IPAddress:10.0.0.1,IP:10.0.0.2", code: 3 },
  },
];

function changeData(folder: string, statement: string): void {
  const db = new DatabaseSync(join(folder, "latchkey.db"));
  db.exec(statement);
  db.close();
}

describe.concurrent("latchkey doctor, of an embedded store", () => {
  it("finds nothing in a first configuration, and says what it has checked", async () => {
    const files = makeCertificate(tempFolder(), "good", undefined, undefined, 90);
    const answer = await runDoctor({ ...healthyEnvironment(), ...internalTls(files) });
    expect(answer).toMatchObject({ ids: [], code: 0 });
    const areas = new Set(answer.checked.map(({ area }) => area));
    expect([...areas]).toEqual(["settings", "files", "open files", "data folder", "disk", "certificates"]);
  });

  it("finds nothing in a folder that is served, and says that it is in use", async () => {
    const environment = healthyEnvironment();
    const latchkey = await startLatchkey(environment);
    const answer = await runDoctor(environment);
    expect(answer).toMatchObject({ ids: [], code: 0 });
    const texts = answer.checked.map(({ text }) => text).join("\n");
    expect(texts).toMatch(/read and sound; in use by a running service/);
    expect(texts).toContain("the schema is this version's");
    // After a crash there is a log beside the file, which is read without a change to either.
    latchkey.kill("SIGKILL");
    await latchkey.exited;
    const folder = environment.LATCHKEY_DATA_DIR as string;
    const before = filesOf(folder);
    expect(before.map(({ name }) => name)).toContain("latchkey.db-wal");
    const afterCrash = await runDoctor(environment);
    expect(afterCrash).toMatchObject({ ids: [], code: 0 });
    expect(afterCrash.checked.map(({ text }) => text).join("\n")).toMatch(/read and sound$/m);
    expect(filesOf(folder)).toEqual(before);
  });

  it("changes nothing: no file, no folder, no migration", async () => {
    const folder = await usedFolder();
    changeData(folder, "DELETE FROM schema_migrations WHERE name = (SELECT max(name) FROM schema_migrations)");
    const before = filesOf(folder);
    const answer = await runDoctor({ ...healthyEnvironment(), LATCHKEY_DATA_DIR: folder });
    expect(answer).toMatchObject({ ids: ["schema-behind"], code: 0 });
    expect(answer.findings[0]?.fix).toContain("latchkey migrate up");
    expect(filesOf(folder)).toEqual(before);
    const parent = tempFolder();
    await runDoctor({ ...healthyEnvironment(), LATCHKEY_DATA_DIR: join(parent, "data") });
    expect(readdirSync(parent)).toEqual([]);
  });

  it.each(faults)("finds $fault, names the fix, and finds nothing else", expectFound);

  it("finds what the valid settings name, beside those that are wrong", async () => {
    const answer = await runDoctor({
      ...healthyEnvironment(),
      LATCHKEY_CALLS_MAX: "0",
      ...internalTls(makeCertificate(tempFolder(), "soon")),
    });
    expect(answer).toMatchObject({ ids: ["settings-invalid", "certificate-ends-soon"], code: 1 });
  });

  it("finds too low a bound of open files", async () => {
    const { LATCHKEY_DATA_DIR = "" } = healthyEnvironment();
    const answer = runInShell('ulimit -n 256; exec "$0" "$@"', { LATCHKEY_DATA_DIR });
    expect(answer).toMatchObject({ ids: ["open-files-low"], code: 3 });
    expect(answer.findings[0]?.fix).toMatch(/^ulimit -n 20100 .*LATCHKEY_CONNECTIONS_MAX=156$/);
  });

  it("finds a disk without room", async () => {
    // A file system that has none, on every machine. Only root may make a folder there.
    const answer = await runDoctor({ ...healthyEnvironment(), LATCHKEY_DATA_DIR: "/proc/latchkey" });
    expect(answer).toMatchObject({ ids: [...(isRoot ? [] : ["data-folder-unusable"]), "disk-full"], code: 1 });
    expect(answer.findings.at(-1)?.fix).toMatch(/^Make room/);
  });

  const mayMount = spawnSync("unshare", ["-m", "true"]).status === 0;
  it.runIf(mayMount)("finds a disk that is nearly full", async () => {
    const folder = tempFolder();
    const mount = 'mount -t tmpfs -o size=100m,mode=700 none "$LATCHKEY_DATA_DIR" && exec "$0" "$@"';
    const environment = { ...healthyEnvironment(), LATCHKEY_DATA_DIR: folder };
    const answer = runInShell(mount, environment, ["unshare", "-m"]);
    expect(answer).toMatchObject({ ids: ["disk-low"], code: 3 });
  });

  it("prints text for people: colours on a terminal only, and none with NO_COLOR", async () => {
    const environment = { ...healthyEnvironment(), LATCHKEY_CALL_MAX: "1" };
    const piped = await runLatchkey(["doctor"], environment);
    expect(piped).toMatchObject({ code: 3, stderr: "" });
    expect(piped.stdout).not.toContain("\u001b");
    expect(piped.stdout).toMatch(
      /^warning: LATCHKEY_CALL_MAX is not a setting of Latchkey; did you mean LATCHKEY_CALLS_MAX\?\n {2}why: {2}.+\n {2}fix: {2}.+$/m,
    );
    expect(piped.stdout).toMatch(/\n1 warning\n$/);

    const shown = onTerminal(environment);
    expect(shown).toContain("\u001b[1;33mwarning\u001b[0m: LATCHKEY_CALL_MAX");
    expect(onTerminal({ ...environment, NO_COLOR: "1" })).not.toContain("\u001b");
    const { LATCHKEY_CALL_MAX: _, ...healthy } = environment;
    expect(onTerminal(healthy)).toContain("\u001b[32mno problems\u001b[0m");
  });

  it("answers a wrong command line with its usage", async () => {
    const lines = ["--url nonsense", "--url ftp://127.0.0.1", "--internal-url http://127.0.0.1:1", "--help"];
    for (const { code, stdout, stderr } of await Promise.all(
      lines.map((line) => runLatchkey(["doctor", ...line.split(" ")])),
    )) {
      expect([stdout, stderr].join("")).toContain("Usage: latchkey doctor");
      expect(code).toBe(stdout === "" ? 2 : 0);
    }
  });
});

/** Doctor under a shell's command, such as one that lowers a bound. */
function runInShell(script: string, environment: Record<string, string>, before: readonly string[] = []) {
  const words = [...before, "sh", "-c", script, process.execPath, builtProgram(), "doctor", "--json"];
  const env = { PATH: process.env.PATH, HOME: tempFolder(), ...environment };
  const { status, stdout, stderr } = spawnSync(words[0] as string, words.slice(1), { env, encoding: "utf8" });
  return readAnswer({ code: status, stdout, stderr });
}

/** What doctor shows on a pseudo-terminal. */
function onTerminal(environment: Record<string, string>): string {
  const env = { PATH: process.env.PATH, HOME: tempFolder(), ...environment };
  const command = `'${process.execPath}' '${builtProgram()}' doctor`;
  return execFileSync("script", ["-qfc", command, "/dev/null"], { env, encoding: "utf8" });
}
