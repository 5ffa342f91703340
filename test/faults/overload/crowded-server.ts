import { onTestFinished } from "vitest";
import { sha256 } from "../../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { formatKey } from "../../../src/domain/key-format.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { CachedKeyLookup } from "../../../src/store/cached-key-lookup.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import type { UsageEngine } from "../../../src/store/usage-ledger.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { composePublicApi } from "../../support/compose-public-api.ts";
import { createKey } from "../../support/manage.ts";
import { sumMetric } from "../../support/read-metric.ts";
import { TestClock } from "../../support/test-clock.ts";

export interface CrowdedServer {
  readonly port: number;
  readonly baseUrl: string;
  readonly waitingRoom: WaitingRoom;
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
  options: { waitingRoom?: (onRejected: () => void) => WaitingRoom; connectionsMax?: number; fastPath?: boolean } = {},
): Promise<CrowdedServer> {
  const random = createSystemRandom();
  const onRejected = () => metrics.shed("call");
  const { waitingRoom: makeRoom = (onFull) => new WaitingRoom(100, onFull), fastPath = true, connectionsMax } = options;
  const waitingRoom = makeRoom(onRejected);
  const cache = { ttlMs: 60_000, keysMax: 10_000, waitingRoom };
  let charged = 0;
  let held = Promise.resolve();
  const engine: UsageEngine = {
    async settle(charges) {
      charged += charges.length;
      await held;
      return (store.usageLanes[0] as UsageEngine).settle(charges);
    },
  };
  const { onePort, store, metrics } = composePublicApi((parts) => {
    const keys = new CachedKeyLookup(parts.keys, cache, parts);
    keys.newsIsCurrent(parts.clock.monotonicMs());
    const settings = { ...parts.settings, ...(connectionsMax !== undefined && { connectionsMax }) };
    return { fastPath, settings, keys, usage: new CoalescingUsageLedger([engine], { ...parts, waitingRoom }) };
  });
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    waitingRoom,
    async addKeys(count, remaining) {
      const secrets = Array.from({ length: count }, () => formatKey("live", random.bytes(24)).key);
      const keys = secrets.map((secret) => sampleKey(new TestClock(), { secretDigest: sha256(secret), remaining }));
      for (const key of keys) await createKey(store.management, key);
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
    shed: async (what) => sumMetric(await metrics.render(), `latchkey_shed_total{what="${what}"}`),
    connections: () => onePort.connections,
  };
}
