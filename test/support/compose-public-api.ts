import { type Clock, systemClock } from "../../src/ambient/clock.ts";
import { createLog, type LogLevel } from "../../src/ambient/log.ts";
import { createMetrics, type MetricsRegistry } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { createPublicApi, type PublicApi, type PublicApiDeps } from "../../src/server/public-api.ts";
import { CachedOwners } from "../../src/store/cached-owners.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Store } from "../../src/store/store.ts";
import { createReadHolders } from "../../src/usecases/read-holders.ts";
import { createMemoryStore } from "./memory-store.ts";
import { checkTestRootKey } from "./test-root-key.ts";

/** What the API is composed of unless a test says otherwise. */
export interface ApiParts extends PublicApiDeps {
  readonly store: Store;
}

export interface ComposedApi extends PublicApi {
  readonly store: Store;
  readonly metrics: MetricsRegistry;
  /** Everything logged so far, as printed. */
  readonly logLines: readonly string[];
}

/**
 * The public API on a store in memory, in this process. `override` gets the default parts and returns the ones that
 * differ, so that a test names only the parts it is about. It needs no test runner: programs
 * that tests start use it too.
 */
export function composePublicApi(
  override: (parts: ApiParts) => Partial<PublicApiDeps> = () => ({}),
  { clock = systemClock, logLevel = "warn" }: { clock?: Clock; logLevel?: LogLevel } = {},
): ComposedApi {
  const logLines: string[] = [];
  const log = createLog(logLevel, (line) => logLines.push(line));
  const ambient = { clock, random: createSystemRandom(), metrics: createMetrics(), log };
  const store = createMemoryStore(clock);
  const managed = { management: store.management, checkRootKey: checkTestRootKey };
  const parts: ApiParts = {
    ...ambient,
    store,
    keys: store.keys,
    owners: new CachedOwners(store.keys, { ttlMs: 0, keysMax: 1, waitingRoom: new WaitingRoom(10_000) }, ambient),
    usage: new CoalescingUsageLedger(store.usageLanes, { ...ambient, waitingRoom: new WaitingRoom(10_000) }),
    limiter: new LocalLimiter(new WindowTable(100, { freeStandingMax: 100 }), ambient),
    checkRootKey: checkTestRootKey,
    readHolders: createReadHolders({ ...ambient, ...managed, permission: "keys.read" }),
    manages: { management: store.management },
    fastPath: true,
    verifyAuth: "open",
    publicUrl: "",
    corsOrigins: [],
    settings: { connectionsMax: 20_000, logLevel, logVerifications: "none", tls: undefined },
  };
  const api = createPublicApi({ ...parts, ...override(parts) });
  return { ...api, store, metrics: ambient.metrics, logLines };
}
