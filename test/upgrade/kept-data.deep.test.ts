import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { Secret } from "../../src/domain/secret.ts";
import type { StoreSettings } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { hasPostgres } from "../support/test-database.ts";
import { checkKeptData } from "./kept-data.ts";
import { keptCalls, keptFile, keptVersions, restoreDump } from "./kept-versions.ts";

/** Stores as versions have left them. `damage` runs one statement before a server does. */
const stores = [
  {
    name: "embedded",
    async open(version: string, damage?: string): Promise<StoreSettings> {
      const dataDir = tempFolder();
      copyFileSync(keptFile(version, "latchkey.db"), join(dataDir, "latchkey.db"));
      if (damage !== undefined) {
        const file = new DatabaseSync(join(dataDir, "latchkey.db"));
        file.exec(damage);
        file.close();
      }
      return { dataDir };
    },
  },
  {
    name: "postgres",
    async open(version: string, damage?: string): Promise<StoreSettings> {
      const url = await restoreDump(version);
      if (damage !== undefined) await query(url, damage);
      return { dataDir: tempFolder(), databaseUrl: new Secret(url) };
    },
  },
] as const;

/** This version on the store, today or later, and what it answers otherwise than it has to. */
async function serve(settings: StoreSettings, laterMs = 0) {
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + laterMs };
  // Events are kept however old they are.
  const { baseUrl } = await startTestServer({ clock, settings: { ...settings, auditDays: 0 } });
  return { check: (calls: ReturnType<typeof keptCalls>) => checkKeptData(baseUrl, calls, clock.nowMs()) };
}

it("something is kept of 0.2.0, and of every kind of answer", () => {
  expect(keptVersions).toContain("0.2.0");
  for (const version of keptVersions) {
    const codes = new Set(JSON.stringify(keptCalls(version, "embedded")).match(/(?<="code":")\w+/g));
    for (const code of ["VALID", "USAGE_EXCEEDED", "RATE_LIMITED", "DISABLED", "NOT_FOUND", "FORBIDDEN"]) {
      expect(codes).toContain(code);
    }
  }
});

const kept = keptVersions.flatMap((version) => stores.map((store) => ({ version, store, name: store.name })));

describe.each(kept.filter(({ name }) => name === "embedded" || hasPostgres))(
  "this version on the store of $version, $name",
  ({ version, store }) => {
    const calls = keptCalls(version, store.name);

    it("answers every key as that version did, and counts go on from where they were", async () => {
      const { check } = await serve(await store.open(version));
      expect(await check(calls)).toEqual([]);
      // Counters have moved on, so the same answers would be wrong now.
      expect(await check(calls)).toContainEqual(expect.stringMatching(/^a counter, call 1: /));
    });

    it("has refilled counters and ended windows and secrets, a hundred days later", async () => {
      const { check } = await serve(await store.open(version), 100 * 86_400_000);
      expect(await check(calls)).toEqual([]);
    });

    it.each([
      ["permissions", "ALTER TABLE keys DROP COLUMN permissions"],
      ["a counter", "UPDATE counters SET remaining = remaining + 1"],
      ["audit events", "DELETE FROM events WHERE id = (SELECT max(id) FROM events)"],
    ])("would be found out if it lost %s", async (what, damage) => {
      const { check } = await serve(await store.open(version, damage));
      expect(await check(calls)).toContainEqual(expect.stringContaining(`${what}, call 1: `));
    });
  },
);
