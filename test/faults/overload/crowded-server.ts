import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { sha256 } from "../../../src/ambient/crypto.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { formatKey } from "../../../src/domain/key-format.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { WindowTable } from "../../../src/domain/window-table.ts";
import { LocalLimiter } from "../../../src/ratelimit/local/local-limiter.ts";
import { createPublicApi } from "../../../src/server/public-api.ts";
import { CachedKeyStore } from "../../../src/store/cached-key-store.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import type { UsageEngine } from "../../../src/store/usage-ledger.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createMemoryStore } from "../../support/memory-store.ts";
import { TestClock } from "../../support/test-clock.ts";

export interface CrowdedServer {
  readonly port: number;
  readonly baseUrl: string;
  readonly room: WaitingRoom;
  /** Secrets of that many keys with that many uses each; of keys without a counter if nothing is said of uses. */
  addKeys(count: number, remaining?: number): Promise<string[]>;
  /** From now on no commit ends, until it is let go on. */
  hold(): { letGo(): void };
  /** Charges that the ledger was asked to settle. */
  readonly charged: number;
  /** The value of `latchkey_shed_total` for calls, or connections. */
  shed(what: "call" | "connection"): Promise<number>;
  connections(): number;
}

/** The public API on a store in memory whose commits end when the test says so. */
export async function startCrowded(
  options: { room?: (onTurnedAway: () => void) => WaitingRoom; connectionsMax?: number; fastPath?: boolean } = {},
): Promise<CrowdedServer> {
  const metrics = createMetrics();
  const random = createSystemRandom();
  const ambient = { clock: systemClock, metrics, random, log: createLog("error", () => {}) };
  const store = createMemoryStore(systemClock);
  const onTurnedAway = () => metrics.shed("call");
  const room = options.room?.(onTurnedAway) ?? new WaitingRoom(100, onTurnedAway);
  const cache = { ttlMs: 60_000, keysMax: 10_000, lookupsMax: 8, lookupsQueuedMax: 100, room };
  let charged = 0;
  let held = Promise.resolve();
  const engine: UsageEngine = {
    async settle(charges) {
      charged += charges.length;
      await held;
      return (store.usageLanes[0] as UsageEngine).settle(charges);
    },
  };
  const { onePort } = createPublicApi({
    ...ambient,
    fastPath: true,
    cacheKeysMax: cache.keysMax,
    connectionsMax: 10_000,
    ...options,
    keys: new CachedKeyStore(store.keys, cache, ambient),
    usage: new CoalescingUsageLedger([engine], { ...ambient, room }),
    limiter: new LocalLimiter(new WindowTable(10), ambient),
    isRootKey: () => false,
  });
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    room,
    async addKeys(count, remaining) {
      const secrets = Array.from({ length: count }, () => formatKey("live", random.bytes(24)).key);
      const keys = secrets.map((secret) => sampleKey(new TestClock(), { secretDigest: sha256(secret), remaining }));
      for (const key of keys) await store.keys.create(key);
      return secrets;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return { letGo: resolve };
    },
    get charged() {
      return charged;
    },
    async shed(what) {
      const [, count = "0"] =
        new RegExp(`^latchkey_shed_total\\{what="${what}"\\} (\\d+)$`, "m").exec(await metrics.render()) ?? [];
      return Number(count);
    },
    connections: () => onePort.connections,
  };
}
