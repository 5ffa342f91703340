import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, vi } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { TestClock } from "../support/test-clock.ts";

function rowsIn(dataDir: string, table: string): number {
  const db = new DatabaseSync(join(dataDir, "latchkey.db"), { readOnly: true });
  const row = db.prepare(`SELECT count(*) AS n FROM ${table}`).get();
  db.close();
  return Number(row?.n);
}

it.each([
  { auditDays: 1, kept: 0 },
  { auditDays: 3, kept: 1 },
  { auditDays: 0, kept: 1 },
])("a start with LATCHKEY_AUDIT_DAYS=$auditDays keeps $kept of one event that is two days old", async (given) => {
  const clock = new TestClock();
  const dataDir = tempFolder();
  const first = await startTestServer({ clock, settings: { dataDir } });
  const { keys } = rawClient({ baseUrl: first.baseUrl, rootKey: first.rootKey });
  await keys.createKey({ apiId: "api" }, { idempotencyKey: "kept-for-a-day" });
  await first.stop();
  expect([rowsIn(dataDir, "events"), rowsIn(dataDir, "idempotency")]).toEqual([1, 1]);

  clock.advance(2 * 86_400_000);
  const second = await startTestServer({ clock, settings: { dataDir, auditDays: given.auditDays } });
  // Removed by the same tidying, before events are.
  await vi.waitFor(() => expect(rowsIn(dataDir, "idempotency")).toBe(0), { timeout: 60_000 });
  const { audit } = rawClient({ baseUrl: second.baseUrl, rootKey: second.rootKey });
  await vi.waitFor(async () => expect((await audit.listEvents({})).events).toHaveLength(given.kept), {
    timeout: 60_000,
  });
  await second.stop();
  expect(rowsIn(dataDir, "events")).toBe(given.kept);
});
