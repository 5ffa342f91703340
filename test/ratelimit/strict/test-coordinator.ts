import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { Coordinator } from "../../../src/ratelimit/coordinator/coordinator.ts";
import { ReplicaStreams } from "../../../src/ratelimit/coordinator/replica-streams.ts";
import { MemoryHub } from "../../../src/ratelimit/local/window-hub.ts";
import { CoordinatorClient } from "../../../src/ratelimit/strict/coordinator-client.ts";
import { StrictLimiter } from "../../../src/ratelimit/strict/strict-limiter.ts";
import { createRatelimitService } from "../../../src/rpc/ratelimit-service.ts";
import { startInternalListener } from "../../../src/server/internal-listener.ts";
import type { KeyedPermitAsk } from "../../../src/store/permit-ledger.ts";
import type { Store } from "../../../src/store/store.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createMemoryStore } from "../../support/memory-store.ts";
import { TestClock } from "../../support/test-clock.ts";

export const sharedSecret = "shared-secret-of-the-test-0123456789";
const log = createLog("error", () => {});
const random = createSystemRandom();

/** Several coordinators may serve one of these. */
export const newStore = (): Store => createMemoryStore(systemClock);

/** Makes a key with such a strict limit and answers its id. */
export async function strictKey(store: Store, limit: number, durationMs = 60_000): Promise<string> {
  const key = sampleKey(new TestClock(), { rateLimit: { mode: "strict", limit, durationMs } });
  await store.keys.create(key);
  return key.id;
}

export type TestCoordinator = Awaited<ReturnType<typeof startTestCoordinator>>;

/** A real coordinator on a real socket, in this process; stopped with the test. */
export async function startTestCoordinator(options: { store?: Store; port?: number; secret?: string } = {}) {
  const { store = newStore(), port = 0, secret } = options;
  const metrics = createMetrics();
  const ambient = { clock: systemClock, random, log, metrics };
  /** Everything that the ledger was asked here. */
  const asked: KeyedPermitAsk[] = [];
  const ledger = { isAway: false, delay: undefined as (() => Promise<void>) | undefined };
  const exchange = async (asks: readonly KeyedPermitAsk[]) => {
    asked.push(...asks);
    await ledger.delay?.();
    return (store.permitLanes[0] as Store["permitLanes"][number]).exchange(asks);
  };
  const coordinator = new Coordinator([{ exchange }], ambient);
  const epoch = Buffer.from(random.bytes(9)).toString("base64url");
  const shutdown = new AbortController();
  const hub = new MemoryHub(() => systemClock.monotonicMs(), epoch);
  const streams = new ReplicaStreams();
  const listener = await startInternalListener({
    ...ambient,
    host: "127.0.0.1",
    port,
    secret: secret === undefined ? undefined : new Secret(secret),
    services: createRatelimitService({
      coordinator,
      hub,
      streams,
      clock: systemClock,
      isLedgerAway: () => ledger.isAway,
      shutdownSignal: shutdown.signal,
    }),
  });
  const stop = async () => {
    shutdown.abort();
    await listener.close();
  };
  onTestFinished(stop);
  return { port: listener.port, address: `127.0.0.1:${listener.port}`, store, asked, metrics, streams, ledger, stop };
}

/** An edge's way to these coordinators, closed with the test. */
export function coordinatorsAt(
  addresses: readonly string[],
  { secret, onRecall = () => {} }: { secret?: string; onRecall?: (keyId: string) => void } = {},
): CoordinatorClient {
  const options = { secret: secret === undefined ? undefined : new Secret(secret), onRecall, clock: systemClock, log };
  const coordinators = new CoordinatorClient(addresses, options);
  onTestFinished(() => coordinators.close());
  return coordinators;
}

/** An edge's strict limits. */
export function limiterAt(addresses: readonly string[]): StrictLimiter & { channel: CoordinatorClient } {
  const channel = coordinatorsAt(addresses, { onRecall: (keyId) => limiter.recall(keyId) });
  const limiter: StrictLimiter = new StrictLimiter({
    channel,
    clock: systemClock,
    metrics: createMetrics(),
    poolsMax: 100,
    timeoutMs: 5000,
    waitingRoom: new WaitingRoom(50_000),
  });
  onTestFinished(() => limiter.stop());
  return Object.assign(limiter, { channel });
}
