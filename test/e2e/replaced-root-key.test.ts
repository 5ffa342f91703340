import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { Secret } from "../../src/domain/secret.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";

/** Of a service with two threads, so many reach both. */
const connections = 24;

describe.runIf(hasPostgres)("a root key that is replaced in the database", { timeout: 60_000 }, () => {
  it.each([1, 2])("is refused, and the new one is taken, with workers: %i", async (workers) => {
    const [url, dataDir] = [await createTestDatabase(), tempFolder()];
    const settings = { databaseUrl: new Secret(url), dataDir, workers, rootKeys: [] };
    const { baseUrl } = await startTestServer({ settings });
    const before = readFileSync(join(dataDir, "root-key-postgres"), "utf8").trim();
    const after = "another-root-key-of-some-length-and-more";
    const statusesOf = async (rootKey: string) => {
      const calls = Array.from({ length: connections }, () => createOverNewConnection(baseUrl, rootKey));
      return [...new Set(await Promise.all(calls))];
    };
    expect([await statusesOf(before), await statusesOf(after)]).toEqual([[200], [401]]);

    const replace = `UPDATE root_keys SET digest = '${sha256(after)}'; INSERT INTO changes (kind) VALUES ('everything')`;
    await query(url, replace);
    const isInForce = async () => expect(await createOverNewConnection(baseUrl, after)).toBe(200);
    await vi.waitFor(isInForce, { timeout: 10_000, interval: 50 });
    expect([await statusesOf(before), await statusesOf(after)]).toEqual([[401], [200]]);
  });
});

/** The status of a key's creation over a new connection, which may go to any thread. */
function createOverNewConnection(baseUrl: string, rootKey: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${rootKey}` };
    const options = { method: "POST", headers, agent: false } as const;
    const request = http.request(`${baseUrl}/v1/keys.createKey`, options, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    });
    request.on("error", reject);
    request.end(JSON.stringify({ apiId: "api" }));
  });
}
