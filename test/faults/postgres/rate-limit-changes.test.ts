import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import type { RateLimit } from "../../../src/domain/rate-limit.ts";
import { openPostgresStore } from "../../../src/store/postgres/open-postgres-store.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { exchange } from "../../contract/settle.ts";
import { deleteKey, setRateLimit } from "../../support/mutate-key.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const keyCount = 6;
const rounds = 30;

const limits: readonly (RateLimit | undefined)[] = [
  { mode: "strict", limit: 3, durationMs: 1000 },
  { mode: "local", limit: 5, durationMs: 2000 },
  undefined,
  { mode: "strict", limit: 7, durationMs: 3000 },
];

describe.runIf(hasPostgres)("limits changed by many while permits are asked for and keys deleted", () => {
  it("fail nobody by a deadlock, and stand in the window's row as with the key", async () => {
    const url = await createTestDatabase();
    const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
    const store = await openPostgresStore({ ...ambient, url, connectionsMax: 12, lanes: 2, usageTimeoutMs: 20_000 });
    onTestFinished(() => store.close());
    // Not strict at first: changes of one key race to make its window.
    const keys = Array.from({ length: keyCount * rounds }, () => sampleKey(new TestClock()));
    await Promise.all(keys.map((key) => store.keys.create(key)));

    let changed: typeof keys | undefined = [];
    const asking = async () => {
      while (changed !== undefined)
        await exchange(
          store,
          changed.map(({ id }) => ({ keyId: id, ...permitAsk({ wantMin: 1 }) })),
        );
    };
    const changing = async () => {
      for (let round = 0; round < rounds; round++) {
        const these = keys.slice(round * keyCount, (round + 1) * keyCount);
        changed = these;
        const changes = these.flatMap(({ id }, i) => [
          ...limits.map((_, at) => setRateLimit(store.keys, id, limits[(at + i) % limits.length])),
          // Every third key goes while it is changed.
          ...(i % 3 === 0 ? [deleteKey(store.keys, id)] : []),
        ]);
        await Promise.all(changes);
      }
      changed = undefined;
    };
    await Promise.all([asking(), changing()]);

    const { rows } = await query(
      url,
      `SELECT count(*)::int AS windows, count(*) FILTER (WHERE k.id IS NULL
         OR (k.ratelimit_limit, k.ratelimit_duration_ms)
            IS DISTINCT FROM (p.ratelimit_limit, p.ratelimit_duration_ms))::int AS astray
       FROM key_permits p LEFT JOIN keys k ON k.id = p.key_id`,
    );
    expect(rows[0].windows).toBeGreaterThan(keyCount);
    expect(rows[0].astray).toBe(0);
  });
});
