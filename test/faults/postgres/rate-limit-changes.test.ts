import { describe, expect, it } from "vitest";
import type { NamedRateLimit } from "../../../src/domain/limits.ts";
import type { RateLimit } from "../../../src/domain/rate-limit.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { exchange } from "../../contract/settle.ts";
import { sized } from "../../support/deep.ts";
import { createKey, deleteKey, setRateLimit, testEvent } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const keyCount = 6;
const rounds = sized(8, 30);
const lockNotAvailable = "55P03";

const limits: readonly (RateLimit | undefined)[] = [
  { mode: "strict", limit: 3, durationMs: 1000 },
  { mode: "local", limit: 5, durationMs: 2000 },
  undefined,
  { mode: "strict", limit: 7, durationMs: 3000 },
];

const [first, local, , second] = limits as readonly RateLimit[];
/** Limits with names, some of them with the window of one that was removed. */
const lists: readonly (readonly NamedRateLimit[] | null)[] = [
  [{ name: "b", rule: first as RateLimit }],
  [
    { name: "a", rule: second as RateLimit },
    { name: "b", rule: local as RateLimit },
  ],
  null,
  [{ name: "a", rule: first as RateLimit }],
];

/** On a busy machine a change can wait for too long for the lock that another one holds. A deadlock would be found before. */
async function patiently<T>(change: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await change();
    } catch (error) {
      const { code } = Object((error as Error).cause) as { code?: string };
      if (code !== lockNotAvailable) throw error;
    }
  }
}

describe.runIf(hasPostgres)("limits changed by many while permits are asked for and keys deleted", () => {
  it("fail no caller by a deadlock, and are the same in the window's row and with the key", async () => {
    const url = await createTestDatabase();
    await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '10ms'`);
    const store = await openTestStore({ url, connectionsMax: 12 });
    // Not strict at first: changes of one key race to make its window.
    const keys = Array.from({ length: keyCount * rounds }, () => sampleKey(new TestClock()));
    await Promise.all(keys.map((key) => createKey(store.management, key)));

    const setBoth = (id: string, rateLimits: (typeof lists)[number] = null, rateLimit: RateLimit | null = null) =>
      store.management.change({ kind: "updateKey", id, changes: { rateLimit, rateLimits }, event: testEvent() });

    let changed: typeof keys | undefined = [];
    const asking = async () => {
      while (changed !== undefined)
        await exchange(
          store,
          changed
            .flatMap(({ id }) => [id, `${id}/a`, `${id}/b`])
            .map((subject) => ({ subject, ...permitAsk({ waiting: ones(1) }) })),
        );
    };
    const changing = async () => {
      for (let round = 0; round < rounds; round++) {
        const these = keys.slice(round * keyCount, (round + 1) * keyCount);
        changed = these;
        const changes = these.flatMap(({ id }, i) => [
          ...limits.map((_, at) =>
            patiently(() => setRateLimit(store.management, id, limits[(at + i) % limits.length])),
          ),
          ...lists.map((_, at) => patiently(() => setBoth(id, lists[(at + i) % lists.length], limits[at]))),
          // Every third key goes while it is changed.
          ...(i % 3 === 0 ? [patiently(() => deleteKey(store.management, id))] : []),
        ]);
        await Promise.all(changes);
      }
      changed = undefined;
    };
    await Promise.all([asking(), changing()]);

    const counted = await query(url, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
    expect(counted.rows[0].deadlocks).toBe(0);
    const { rows } = await query(
      url,
      `SELECT count(*)::int AS windows, count(*) FILTER (WHERE limit_name <> '')::int AS named, count(*) FILTER (WHERE k.id IS NULL
         OR CASE WHEN limit_name = '' THEN (k.ratelimit_limit, k.ratelimit_duration_ms) IS DISTINCT FROM (rule_limit, rule_duration_ms)
              ELSE rule_limit IS DISTINCT FROM (SELECT (l->'rule'->>'limit')::bigint
                FROM jsonb_array_elements(k.ratelimits::jsonb) l WHERE l->>'name' = limit_name) END)::int AS astray
       FROM (SELECT *, split_part(subject, '/', 1) AS key_id, split_part(subject, '/', 2) AS limit_name FROM permit_windows) p
         LEFT JOIN keys k ON k.id = p.key_id`,
    );
    expect(rows[0].windows - rows[0].named).toBeGreaterThan(keyCount);
    expect(rows[0].named).toBeGreaterThan(keyCount);
    expect(rows[0].astray).toBe(0);
  });
});
