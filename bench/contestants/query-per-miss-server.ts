// Latchkey with the usual look-up: each key that is not in memory is asked for by a prepared query of its own, over a pool of
// connections. Everything else is the real thing. `node query-per-miss-server.ts <database URL> <keys in memory>`; prints
// its port.
import pg from "pg";
import { type KeyRow, keyColumns, toKey } from "../../gen/resources/store/found-rows.ts";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { createPublicApi } from "../../src/server/public-api.ts";
import { CachedKeyLookup } from "../../src/store/cached-key-lookup.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";

const [url, keysMax] = process.argv.slice(2) as [string, string];
/** As many as Latchkey has by default. */
const connections = 10;
const text = `SELECT ${keyColumns.join(", ")}, NULL, NULL
  FROM keys LEFT JOIN counters ON counters.subject = keys.id WHERE keys.digest = $1`;

const metrics = createMetrics();
const log = createLog("warn", (line) => process.stderr.write(line));
const ambient = { clock: systemClock, random: createSystemRandom(), metrics, log };
const store = await openPostgresStore({ ...ambient, url, connectionsMax: 1, lanes: 1, usageTimeoutMs: 235 });
const pool = new pg.Pool({ connectionString: url, max: connections, idleTimeoutMillis: 0 });
const waitingRoom = new WaitingRoom(10_000);
const perMiss = {
  async findByDigest(digest: string) {
    const { rows } = await pool.query({ name: "find", text, values: [digest], rowMode: "array" });
    return rows[0] && toKey(rows[0] as unknown as KeyRow);
  },
};
const cache = { ttlMs: 86_400_000, keysMax: Number(keysMax), waitingRoom };
const keys = new CachedKeyLookup(perMiss, cache, ambient);
// Nothing changes, so there is no feed of changes.
keys.newsIsCurrent(systemClock.monotonicMs());
const { onePort, setReady } = createPublicApi({
  ...ambient,
  keys,
  owners: { ownerOf: () => undefined },
  usage: new CoalescingUsageLedger(store.usageLanes, { ...ambient, waitingRoom }),
  limiter: new LocalLimiter(new WindowTable(1), ambient),
  checkRootKey: () => undefined,
  readHolders: () => Promise.reject(new Error("nobody asks")),
  manages: { management: store.management },
  fastPath: true,
  verifyAuth: "open",
  publicUrl: "",
  corsOrigins: [],
  settings: { connectionsMax: 20_000, logLevel: "warn", logVerifications: "none", tls: undefined },
});
setReady(true);
console.log(await onePort.listen(0, "127.0.0.1"));
