import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { isDeep, sized } from "../support/deep.ts";
import { bash } from "../support/documented-steps.ts";
import { engines, oneEngine } from "../support/engines.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";

const firstKey = "first-root-key-0123456789-0123456789";
const secondKey = "second-root-key-0123456789-0123456789";

// The `script` of Linux makes a terminal. On other systems it takes its arguments in another way.
const hasTerminal = process.platform === "linux";

/** The lines to paste: all indented ones except the root key itself. */
function printedLines(latchkey: LatchkeyProcess): string[] {
  const lines = latchkey.stdout().split("\n");
  return lines.filter((line) => line.startsWith("  ") && !line.startsWith("  lk_root_")).map((line) => line.trim());
}

/** Everywhere a root key was printed. */
function printedRootKeys(latchkey: LatchkeyProcess): string[] {
  return (latchkey.stdout() + latchkey.stderr()).match(/\blk_root_\w+/g) ?? [];
}

function rootKeyIn(file: string): string {
  return readFileSync(file, "utf8").trim();
}

/** A command that runs the service on its own terminal. Its log stays where it was. */
function onTerminal(): string {
  const command = join(tempFolder(), "latchkey-on-a-terminal");
  const service = `'${process.execPath}' '${builtProgram()}' serve`;
  writeFileSync(command, `#!/bin/sh\nexec 3>&2\nexec script -qec "${service} 2>&3" /dev/null\n`, { mode: 0o755 });
  return command;
}

async function accepts(latchkey: LatchkeyProcess, rootKey: string): Promise<boolean> {
  const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey }).keys;
  return client.createKey({ apiId: "api" }).then(
    () => true,
    (error: { code: string }) => {
      if (error.code !== "UNAUTHORIZED") throw error;
      return false;
    },
  );
}

async function stop(latchkey: LatchkeyProcess): Promise<void> {
  latchkey.kill("SIGTERM");
  expect(await latchkey.exited).toBe(0);
}

/** The store has no part in these: `npm test` has them on one engine. */
describe.each(sized(engines.slice(0, 1), engines.slice(1)))("on $name", (engine) => {
  describe("the first start", () => {
    it.runIf(hasTerminal)("prints the root key to a terminal, once", async () => {
      const store = await engine.environment();
      const file = join(store.LATCHKEY_DATA_DIR, engine.rootKeyFile);
      const latchkey = await startLatchkey(store, onTerminal());

      // The output comes through the terminal, and may be later than the log.
      await vi.waitFor(() => expect(latchkey.stdout()).toContain("The same over gRPC"));
      expect(printedRootKeys(latchkey)).toEqual([rootKeyIn(file)]);
      expect(latchkey.stdout()).toContain(`(it is also in ${file})`);
      expect(latchkey.stderr()).not.toContain("lk_root_");
    });

    it("prints lines that work when pasted", async () => {
      // If this path can be pasted into a shell, every path can.
      const dataDir = join(tempFolder(), `it's "my" $HOME data`);
      const latchkey = await startLatchkey({ ...(await engine.environment()), LATCHKEY_DATA_DIR: dataDir });
      const [create, verify, overGrpc, ...more] = printedLines(latchkey);
      expect(more).toEqual([]);

      // In the checkout, where `npx` finds what is installed; offline, so that it takes nothing else.
      const env = { ...process.env, npm_config_offline: "true" };
      const [json = "", grpc = ""] = (
        await bash(root, `${create}\n${verify}\necho\n${overGrpc} | tr -d '\\n '`, { env })
      ).split("\n");

      expect(JSON.parse(json)).toMatchObject({ valid: true, remaining: 99 });
      expect(JSON.parse(grpc)).toMatchObject({ valid: true, remaining: 98 });
    });
  });

  describe("a configured root key", () => {
    it("may be two while it is rotated, and none is generated then", async () => {
      const store = await engine.environment();
      const latchkey = await startLatchkey({ ...store, LATCHKEY_ROOT_KEY: `${firstKey},${secondKey}` });

      expect(printedRootKeys(latchkey)).toEqual([]);
      expect(() => statSync(join(store.LATCHKEY_DATA_DIR, engine.rootKeyFile))).toThrow("ENOENT");
      expect(await accepts(latchkey, firstKey)).toBe(true);
      expect(await accepts(latchkey, secondKey)).toBe(true);
      expect(await accepts(latchkey, `${firstKey},${secondKey}`)).toBe(false);
    });

    it("may come from a file", async () => {
      const file = join(tempFolder(), "root");
      writeFileSync(file, `${firstKey}\n`);
      const latchkey = await startLatchkey({ ...(await engine.environment()), LATCHKEY_ROOT_KEY_FILE: file });

      expect(printedRootKeys(latchkey)).toEqual([]);
      expect(await accepts(latchkey, firstKey)).toBe(true);
    });
  });
});

describe.each(oneEngine)("on $name", (engine) => {
  describe("the first start", () => {
    it("prints where it serves and the file of the root key, which only its owner can read", async () => {
      const dataDir = join(tempFolder(), "made", "at-start");
      const file = join(dataDir, engine.rootKeyFile);
      const latchkey = await startLatchkey({ ...(await engine.environment()), LATCHKEY_DATA_DIR: dataDir });

      expect(latchkey.stdout()).toContain(`on ${latchkey.baseUrl}\n`);
      expect(latchkey.stdout()).toContain(`${latchkey.internalUrl}/metrics`);
      // Standard output is no terminal here, but mostly a log.
      expect(latchkey.stdout()).toContain(`\nRoot key: generated, in ${file}\n`);
      expect(printedRootKeys(latchkey)).toEqual([]);
      const rootKey = rootKeyIn(file);
      expect(rootKey).toMatch(/^lk_root_/);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(statSync(dataDir).mode & 0o777).toBe(0o700);
      expect(await accepts(latchkey, rootKey)).toBe(true);
      expect(await accepts(latchkey, `${rootKey}0`)).toBe(false);
    });
  });

  describe("a later start", () => {
    it("prints no secret, and the root key of the first still counts until another one is set", async () => {
      const store = { ...(await engine.environment()), LATCHKEY_DRAIN_MS: "0" };
      const rootKeyFile = join(store.LATCHKEY_DATA_DIR, engine.rootKeyFile);
      const first = await startLatchkey(store);
      const generated = rootKeyIn(rootKeyFile);
      await stop(first);

      const second = await startLatchkey(store);
      expect(second.stdout()).toContain(`on ${second.baseUrl}\n`);
      expect(second.stdout() + second.stderr()).not.toMatch(/lk_root_|Root key/);
      expect(await accepts(second, generated)).toBe(true);
      expect(readFileSync(rootKeyFile, "utf8")).toBe(`${generated}\n`);
      await stop(second);

      const configured = await startLatchkey({ ...store, LATCHKEY_ROOT_KEY: firstKey });
      expect(configured.stdout() + configured.stderr()).not.toContain(firstKey);
      expect(await accepts(configured, firstKey)).toBe(true);
      expect(await accepts(configured, generated)).toBe(false);
    });
  });
});

if (!isDeep) {
  it.runIf(hasPostgres)("a first start on Postgres leaves the embedded store's root key alone", async () => {
    const [LATCHKEY_DATA_DIR, DATABASE_URL] = [tempFolder(), await createEmptyDatabase()];
    const own = { LATCHKEY_DATA_DIR, LATCHKEY_DRAIN_MS: "0" };
    await stop(await startLatchkey(own));
    const rootKey = readFileSync(join(LATCHKEY_DATA_DIR, "root-key"), "utf8");
    await stop(await startLatchkey({ ...own, DATABASE_URL }));
    expect(readFileSync(join(LATCHKEY_DATA_DIR, "root-key"), "utf8")).toBe(rootKey);
  });

  it("a later start warns if the file of the only root key is gone, unless one is set or was created", async () => {
    const own = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_DRAIN_MS: "0" };
    const file = join(own.LATCHKEY_DATA_DIR, "root-key");
    const warns = async (environment: Record<string, string>) => {
      const latchkey = await startLatchkey({ ...own, ...environment });
      await stop(latchkey);
      return latchkey.stderr().includes("the only root key is the generated one, and its file is missing");
    };
    const first = await startLatchkey(own);
    const rootKey = rootKeyIn(file);
    await stop(first);
    expect(await warns({})).toBe(false);
    rmSync(file);
    expect(await warns({})).toBe(true);
    const second = await startLatchkey(own);
    const { rootKeys } = rawClient({ baseUrl: second.baseUrl, rootKey });
    await rootKeys.createRootKey({ permissions: ["*"], allApis: true });
    await stop(second);
    expect(await warns({})).toBe(false);
    expect(await warns({ LATCHKEY_ROOT_KEY: firstKey })).toBe(false);
  });

  // The embedded store serves one process at a time.
  describe.runIf(hasPostgres)("replicas that start together for the first time, on Postgres", () => {
    it.each([
      ["folders of their own", () => tempFolder()],
      ["one folder", (shared: string) => shared],
    ])("and have %s agree on one root key, which one of them leaves in its folder", async (_, folderFor) => {
      const [DATABASE_URL, shared] = [await createEmptyDatabase(), tempFolder()];
      const folders = Array.from({ length: 3 }, () => folderFor(shared));
      const replicas = await Promise.all(
        folders.map((LATCHKEY_DATA_DIR) => startLatchkey({ DATABASE_URL, LATCHKEY_DATA_DIR })),
      );

      const files = [...new Set(folders)]
        .map((folder) => join(folder, "root-key-postgres"))
        .filter((file) => existsSync(file));
      expect(files).toHaveLength(1);
      const rootKey = rootKeyIn(files[0] as string);
      for (const replica of replicas) expect(await accepts(replica, rootKey)).toBe(true);
      expect(replicas.filter((replica) => replica.stdout().includes("Root key: generated, in "))).toHaveLength(1);
      expect(replicas.flatMap(printedRootKeys)).toEqual([]);
    });
  });
}
