import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { Secret } from "../../src/domain/secret.ts";
import { createOverNewConnection } from "../support/create-over-new-connection.ts";
import { sized } from "../support/deep.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";

/** Of a service with two workers, so many reach both. */
const connections = 24;

describe.runIf(hasPostgres)("a root key that is replaced in the database", () => {
  it.each(sized([1], [2]))("is refused, and the new one is taken, with workers: %i", async (workers) => {
    const [url, dataDir] = [await createTestDatabase(), tempFolder()];
    const settings = { databaseUrl: new Secret(url), dataDir, workers, rootKeys: [] };
    const { baseUrl } = await startTestServer({ settings });
    await replaceRootKey(url, dataDir, [baseUrl]);
  });

  it("is refused, and the new one is taken, on edges of two coordinators", async () => {
    const [url, dataDir] = [await createTestDatabase(), tempFolder()];
    const core = { role: "coordinator", databaseUrl: new Secret(url), rootKeys: [] } as const;
    // The first generates the root key.
    const first = await startTestServer({ settings: { ...core, dataDir } });
    const second = await startTestServer({ settings: core });
    // Each edge has both, and each root key has a coordinator that it is checked by.
    const coordinators = [first, second].map(({ internalPort }) => `127.0.0.1:${internalPort}`);
    const edges = await Promise.all([1, 2].map(() => startTestServer({ settings: { role: "edge", coordinators } })));
    await replaceRootKey(
      url,
      dataDir,
      edges.map(({ baseUrl }) => baseUrl),
    );
  });
});

/** A busy machine may take longer than the service lets a caller wait. */
async function codeOf(baseUrl: string, rootKey: string): Promise<string> {
  for (;;) {
    const code = await createOverNewConnection(baseUrl, rootKey, "api");
    if (code !== "SERVICE_UNAVAILABLE") return code;
  }
}

/** Replaces the generated root key, and holds each front to it. */
async function replaceRootKey(url: string, dataDir: string, baseUrls: readonly string[]): Promise<void> {
  const before = readFileSync(join(dataDir, "root-key-postgres"), "utf8").trim();
  const after = formatKey("lk_root", createSystemRandom().bytes(32)).key;
  const codesOf = async (rootKey: string) => {
    const callsOf = (baseUrl: string) => Array.from({ length: connections }, () => codeOf(baseUrl, rootKey));
    return [...new Set(await Promise.all(baseUrls.flatMap(callsOf)))];
  };
  expect([await codesOf(before), await codesOf(after)]).toEqual([["OK"], ["UNAUTHORIZED"]]);

  const replace = `UPDATE root_keys SET digest = '${sha256(after)}'; INSERT INTO changes (kind) VALUES ('everything')`;
  await query(url, replace);
  for (const rootKey of [before, after]) {
    const inForce = rootKey === after ? ["OK"] : ["UNAUTHORIZED"];
    await vi.waitFor(async () => expect(await codesOf(rootKey)).toEqual(inForce), { timeout: 60_000, interval: 50 });
  }
  expect([await codesOf(before), await codesOf(after)]).toEqual([["UNAUTHORIZED"], ["OK"]]);
}
