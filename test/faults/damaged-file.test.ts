import { cpSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatKey } from "../../src/domain/key-format.ts";
import { createClient } from "../../src/sdk/index.ts";
import { damageEveryFourthPage, emptyLog, overwritePage } from "../support/damage-file.ts";
import { testRootKey } from "../support/in-process-server.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";

const environmentOf = (dataDir: string) => ({
  LATCHKEY_DATA_DIR: dataDir,
  LATCHKEY_ROOT_KEY: testRootKey,
  LATCHKEY_DRAIN_MS: "0",
});

const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };

/** A folder with many keys of every kind, whose process was ended by this signal; everything is in the data file. */
async function endedBy(signal: NodeJS.Signals): Promise<{ dataDir: string; file: string; keys: string[] }> {
  const dataDir = tempFolder();
  const latchkey = await startLatchkey(environmentOf(dataDir));
  const client = createClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
  const ratelimit = { async: false, limit: 1000, duration: 60_000 };
  const kinds = [{}, { remaining: 1000 }, { ratelimit }, { meta: { filler: "x".repeat(300) } }];
  const created = await Promise.all(
    Array.from({ length: 320 }, (_, i) => client.createKey({ apiId: "api", ...kinds[i % kinds.length] })),
  );
  latchkey.kill(signal);
  await latchkey.exited;
  const file = join(dataDir, "latchkey.db");
  if (signal === "SIGKILL") emptyLog(file);
  return { dataDir, file, keys: created.map(({ key }) => key) };
}

/** How often each outcome came when all keys were verified: codes, and statuses of failed calls. */
async function outcomesOf({ baseUrl }: LatchkeyProcess, keys: readonly string[]): Promise<Record<string, number>> {
  const client = createClient({ baseUrl });
  const counts: Record<string, number> = {};
  const verify = async (key: string) => {
    const outcome = await client.verifyKey({ key }).then(
      ({ code }) => code as string,
      (error: { status?: number }) => String(error.status),
    );
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  };
  await Promise.all(keys.map(verify));
  return counts;
}

async function expectOutage(latchkey: LatchkeyProcess, keys: readonly string[]): Promise<void> {
  expect(await outcomesOf(latchkey, keys)).toEqual({ "503": keys.length });
  const client = createClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
  await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });
  expect((await fetch(`${latchkey.baseUrl}/readyz`)).status).toBe(503);
  expect((await fetch(`${latchkey.baseUrl}/livez`)).status).toBe(200);
  expect(latchkey.stderr()).toContain("put a backup in the place of the data file");
}

describe("a data file after a crash", { timeout: 60_000 }, () => {
  it("is an outage where it is damaged, whatever the damage: no key is called invalid", async () => {
    const { dataDir, keys } = await endedBy("SIGKILL");
    const copyOf = (change: (file: string) => void) => {
      const copy = join(tempFolder(), "data");
      cpSync(dataDir, copy, { recursive: true });
      change(join(copy, "latchkey.db"));
      return copy;
    };

    const sound = await startLatchkey(environmentOf(dataDir));
    expect(await outcomesOf(sound, keys), "as it is").toEqual({ VALID: keys.length });
    expect(await outcomesOf(sound, [formatKey(undefined, new Uint8Array(24)).key])).toEqual({ NOT_FOUND: 1 });
    expect((await fetch(`${sound.baseUrl}/readyz`)).status).toBe(200);

    for (const damage of ["random bytes", "pages in the wrong place"] as const) {
      const damaged = await startLatchkey(environmentOf(copyOf((file) => damageEveryFourthPage(file, damage, 1))));
      await expectOutage(damaged, keys);
    }

    // Page 1 has the schema, page 3 the names of its migrations: without them there is nothing to start on.
    const unreadable = [
      (file: string) => overwritePage(file, 1, Buffer.alloc(4096, 7)),
      (file: string) => damageEveryFourthPage(file, "random bytes", 3),
    ].map((damage) => runLatchkey(["serve"], { ...ports, LATCHKEY_DATA_DIR: copyOf(damage) }));
    for (const { code, stdout, stderr } of await Promise.all(unreadable)) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/the data file .* (is damaged|cannot be opened)/);
    }
  });
});

describe("a data file after an orderly stop", { timeout: 60_000 }, () => {
  it("is an outage where it was damaged since, though it looks as it did then; threads know too", async () => {
    const { dataDir, file, keys } = await endedBy("SIGTERM");
    const { atime, mtime } = statSync(file);
    damageEveryFourthPage(file, "pages in the wrong place", 1);
    utimesSync(file, atime, mtime);
    await expectOutage(await startLatchkey({ ...environmentOf(dataDir), LATCHKEY_WORKERS: "2" }), keys);
  });
});
