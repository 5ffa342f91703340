import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { formatKey } from "../../src/domain/key-format.ts";
import { sized } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";

const unknownKey = formatKey(undefined, new Uint8Array(24)).key;
const json = { "content-type": "application/json", connection: "close" };

/** Asks without a pause from before the start until some rounds after it, and answers every status that came. */
async function statusesAroundStart(port: number, rootKey: string): Promise<Map<string, Set<number>>> {
  const statuses = new Map<string, Set<number>>();
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal: AbortSignal.timeout(20_000) });
    await response.text();
    statuses.set(path, (statuses.get(path) ?? new Set()).add(response.status));
  };
  for (let rounds = 0; rounds < 30; ) {
    try {
      await Promise.all([
        ask("/readyz", { headers: { connection: "close" } }),
        ask("/v1/keys.verifyKey", { method: "POST", headers: json, body: JSON.stringify({ key: unknownKey }) }),
        ask("/v1/keys.createKey", {
          method: "POST",
          headers: { ...json, authorization: `Bearer ${rootKey}` },
          body: JSON.stringify({ apiId: "api" }),
        }),
      ]);
      rounds++;
    } catch {
      // The port is not open yet.
    }
  }
  return statuses;
}

describe.runIf(hasPostgres)("a start on Postgres", () => {
  it("answers the first request that it accepts", async () => {
    const LATCHKEY_DATA_DIR = tempFolder();
    const environment = { LATCHKEY_DATA_DIR, DATABASE_URL: await createTestDatabase(), LATCHKEY_DRAIN_MS: "0" };
    // The first start generates the root key, which later ones read from the store.
    await startLatchkey(environment);
    const rootKey = readFileSync(join(LATCHKEY_DATA_DIR, "root-key-postgres"), "utf8").trim();

    for (const LATCHKEY_WORKERS of sized(["1"], ["2"])) {
      const port = await freePort();
      const asking = statusesAroundStart(port, rootKey);
      await startLatchkey({ ...environment, LATCHKEY_WORKERS, PORT: String(port) });
      expect(Object.fromEntries(await asking)).toEqual({
        "/readyz": new Set([200]),
        "/v1/keys.verifyKey": new Set([200]),
        "/v1/keys.createKey": new Set([200]),
      });
    }
  });

  it("listens without its database too, after a while, and is alive but not ready", async () => {
    const listenWithout = async (extra: Record<string, string>) => {
      const [port, nowhere] = await Promise.all([freePort(), freePort()]);
      const DATABASE_URL = `postgres://127.0.0.1:${nowhere}/nowhere`;
      const own = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey, PORT: String(port) };
      // It never says that it serves, and is killed with the test.
      startLatchkey({ ...own, DATABASE_URL, ...extra }).catch(() => {});
      const base = `http://127.0.0.1:${port}`;
      let alive: Response | undefined;
      while (alive === undefined) alive = await fetch(`${base}/livez`).catch(() => undefined);
      return [alive.status, (await fetch(`${base}/readyz`)).status];
    };

    const coordinator = { LATCHKEY_ROLE: "coordinator", LATCHKEY_INTERNAL_SECRET: testInternalSecret };
    const kinds = [{}, { LATCHKEY_WORKERS: "2" }, coordinator];
    for (const statuses of await Promise.all(kinds.map(listenWithout))) expect(statuses).toEqual([200, 503]);
  });
});

describe("npm start", () => {
  it("serves from the sources of a checkout, and SIGTERM ends it in order", async () => {
    const environment = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
    const latchkey = await startLatchkey(environment, ["npm", "start"]);
    // npm itself cannot be killed before it has passed the signal on.
    onTestFinished(async () => {
      latchkey.kill("SIGTERM");
      await latchkey.exited;
    });
    expect(latchkey.stdout()).toContain("src/cli/latchkey.ts serve");
    const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
    const { key } = await client.createKey({ apiId: "api", remaining: 1 });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 0 });
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
  });
});
