import { execFile } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { createClient } from "../../src/sdk/index.ts";
import { engines } from "../support/engines.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";

const timeout = 20_000;
const firstKey = "first-root-key-0123456789-0123456789";
const secondKey = "second-root-key-0123456789-0123456789";

const curlIsHere = await bash("command -v curl").then(Boolean, () => false);

async function bash(script: string): Promise<string> {
  // In the checkout, where `npx` finds what is installed; offline, so that it takes nothing else.
  const env = { ...process.env, npm_config_offline: "true" };
  return (await promisify(execFile)("bash", ["-c", script], { cwd: root, env })).stdout;
}

/** The lines to paste: all that are indented, but for the root key itself. */
function printedLines(latchkey: LatchkeyProcess): string[] {
  const lines = latchkey.stdout().split("\n");
  return lines.filter((line) => line.startsWith("  ") && !line.startsWith("  lk_root_")).map((line) => line.trim());
}

function printedRootKeys(latchkey: LatchkeyProcess): string[] {
  return latchkey.stdout().match(/\blk_root_\w+/g) ?? [];
}

async function accepts(latchkey: LatchkeyProcess, rootKey: string): Promise<boolean> {
  const client = createClient({ baseUrl: latchkey.baseUrl, rootKey });
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

describe.each(engines)("on $name", (engine) => {
  describe("the first start", { timeout }, () => {
    it("prints where it serves and, once, a root key that only its owner can read from the file", async () => {
      const dataDir = join(tempFolder(), "made", "at-start");
      const latchkey = await startLatchkey({ ...(await engine.environment()), LATCHKEY_DATA_DIR: dataDir });

      expect(latchkey.stdout()).toContain(`on ${latchkey.baseUrl}\n`);
      expect(latchkey.stdout()).toContain(`${latchkey.internalUrl}/metrics`);
      const [rootKey = "", ...more] = printedRootKeys(latchkey);
      expect(more).toEqual([]);
      expect(readFileSync(join(dataDir, engine.rootKeyFile), "utf8")).toBe(`${rootKey}\n`);
      expect(statSync(join(dataDir, engine.rootKeyFile)).mode & 0o777).toBe(0o600);
      expect(statSync(dataDir).mode & 0o777).toBe(0o700);
      expect(latchkey.stderr()).not.toContain(rootKey);
      expect(await accepts(latchkey, rootKey)).toBe(true);
      expect(await accepts(latchkey, `${rootKey}0`)).toBe(false);
    });

    it.skipIf(!curlIsHere)("prints lines that work as they are (skipped where there is no curl)", async () => {
      // Whoever can be pasted into a shell unharmed here can be so anywhere.
      const dataDir = join(tempFolder(), `it's "my" $HOME data`);
      const latchkey = await startLatchkey({ ...(await engine.environment()), LATCHKEY_DATA_DIR: dataDir });
      const [create, verify, overGrpc, ...more] = printedLines(latchkey);
      expect(more).toEqual([]);

      const [json = "", grpc = ""] = (await bash(`${create}\n${verify}\necho\n${overGrpc} | tr -d '\\n '`)).split("\n");

      expect(JSON.parse(json)).toMatchObject({ valid: true, remaining: 99 });
      expect(JSON.parse(grpc)).toMatchObject({ valid: true, remaining: 98 });
    });
  });

  describe("a later start", { timeout }, () => {
    it("prints no secret, and the root key of the first still counts until another one is set", async () => {
      const store = await engine.environment();
      const rootKeyFile = join(store.LATCHKEY_DATA_DIR, engine.rootKeyFile);
      const first = await startLatchkey(store);
      const [generated = ""] = printedRootKeys(first);
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

  describe("a root key of one's own", { timeout }, () => {
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

it.runIf(hasPostgres)("a first start on Postgres leaves the embedded store's root key alone", { timeout }, async () => {
  const [LATCHKEY_DATA_DIR, DATABASE_URL] = [tempFolder(), await createTestDatabase()];
  await stop(await startLatchkey({ LATCHKEY_DATA_DIR }));
  const rootKey = readFileSync(join(LATCHKEY_DATA_DIR, "root-key"), "utf8");
  await stop(await startLatchkey({ LATCHKEY_DATA_DIR, DATABASE_URL }));
  expect(readFileSync(join(LATCHKEY_DATA_DIR, "root-key"), "utf8")).toBe(rootKey);
});

// The embedded store serves one process at a time.
describe.runIf(hasPostgres)("replicas that start together for the first time, on Postgres", { timeout }, () => {
  it.each([
    ["folders of their own", () => tempFolder()],
    ["one folder", (shared: string) => shared],
  ])("and have %s agree on one root key, which one of them prints and leaves in its folder", async (_, folderFor) => {
    const [DATABASE_URL, shared] = [await createTestDatabase(), tempFolder()];
    const folders = Array.from({ length: 4 }, () => folderFor(shared));
    const replicas = await Promise.all(
      folders.map((LATCHKEY_DATA_DIR) => startLatchkey({ DATABASE_URL, LATCHKEY_DATA_DIR })),
    );

    const [rootKey = "", ...more] = replicas.flatMap(printedRootKeys);
    expect(more).toEqual([]);
    for (const replica of replicas) expect(await accepts(replica, rootKey)).toBe(true);
    const files = [...new Set(folders)]
      .map((folder) => join(folder, "root-key-postgres"))
      .filter((file) => existsSync(file));
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual([`${rootKey}\n`]);
  });
});
