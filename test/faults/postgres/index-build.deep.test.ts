import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { addKeysLike, loadDuring, plainIndexText, usageIndex } from "../../support/index-build.ts";
import { postJson } from "../../support/post-json.ts";
import { query } from "../../support/run-statement.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";
import { atTestEnd } from "../../support/test-end.ts";

const rows = 50_000;
/** How long another transaction has changes of the table open when the build begins: a build has to wait for it. */
const openMs = 1500;

/** A service with many keys, and an index that another process builds while the service is used. */
async function buildUnderLoad(build: (url: string) => Promise<unknown>) {
  const url = await createEmptyDatabase();
  const server = await startTestServer({ settings: { databaseUrl: new Secret(url), usageTimeoutMs: 500 } });
  const headers = { authorization: `Bearer ${server.rootKey}` };
  const refill = { interval: "daily", amount: 10 };
  const body = { apiId: "bulk", remaining: 10, refill };
  const { text } = await postJson(server.baseUrl, "/v1/keys.createKey", body, headers);
  await addKeysLike(url, (JSON.parse(text) as { keyId: string }).keyId, rows);
  const other = new pg.Client({ connectionString: url });
  atTestEnd(() => other.end());
  await other.connect();
  return loadDuring({ ...server, callers: 8 }, async () => {
    await other.query("BEGIN; UPDATE counters SET remaining = 9 WHERE subject = 'bulk_1'");
    const building = build(url);
    await delay(openMs);
    await other.query("COMMIT");
    await building;
  });
}

describe.runIf(hasPostgres)("an index that is built on a table in use", () => {
  it("fails no verification and no change", async () => {
    const { verified, changed, failed } = await buildUnderLoad(async (url) => {
      const engine = openPgEngine({ url, connectionsMax: 1 });
      atTestEnd(() => engine.close());
      expect(await migrateUp(engine, 0, [...pgMigrations, usageIndex])).toEqual([usageIndex.name]);
    });
    expect(failed).toEqual({});
    expect(Math.min(verified, changed)).toBeGreaterThan(20);
  });

  it("control: in a transaction it holds up verifications until they fail", async () => {
    const { failed } = await buildUnderLoad((url) => query(url, plainIndexText));
    expect(Object.keys(failed).some((what) => what.startsWith("verifyKey 503"))).toBe(true);
  });
});
