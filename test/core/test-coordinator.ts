import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { LinkCredentials } from "../../src/core/remote/link-credentials.ts";
import { RemoteCore, type RemoteCoreOptions } from "../../src/core/remote/remote-core.ts";
import { FrontStreams } from "../../src/core/serve/front-streams.ts";
import { Secret } from "../../src/domain/secret.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import type { OnRecall, PermitChannel } from "../../src/ratelimit/permit-channel.ts";
import { StrictLimiter } from "../../src/ratelimit/strict/strict-limiter.ts";
import { createCoreService } from "../../src/rpc/core-service.ts";
import { startInternalListener } from "../../src/server/internal-listener.ts";
import type { TlsOptions } from "../../src/server/port/tls-handshakes.ts";
import type { SubjectAsk } from "../../src/store/permit-ledger.ts";
import type { Store } from "../../src/store/store.ts";
import type { Charge } from "../../src/store/usage-ledger.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";
import { buildLocalCore } from "./local-core.ts";

export const sharedSecret = "shared-secret-of-the-test-0123456789";
const log = createLog("error", () => {});
const random = createSystemRandom();

/** Several coordinators may serve one of these. */
export const newStore = (): Store => createMemoryStore(systemClock);

/** Makes a key with such a strict limit and answers its id. */
export async function strictKey(store: Store, limit: number, durationMs = 60_000): Promise<string> {
  const key = sampleKey(new TestClock(), { rateLimit: { mode: "strict", limit, durationMs } });
  await createKey(store.management, key);
  return key.id;
}

/** Makes a key with such a counter and answers its id. */
export async function countedKey(store: Store, remaining: number): Promise<string> {
  const key = sampleKey(new TestClock(), { remaining });
  await createKey(store.management, key);
  return key.id;
}

export type TestCoordinator = Awaited<ReturnType<typeof startTestCoordinator>>;

/** A real coordinator on a real socket, in this process; stopped with the test. */
export async function startTestCoordinator(
  options: { store?: Store; port?: number; secret?: string; tls?: TlsOptions; clock?: Clock; windowsMax?: number } = {},
) {
  const { store = newStore(), port = 0, secret, tls, clock = systemClock, windowsMax } = options;
  const metrics = createMetrics();
  const ambient = { clock, random, log, metrics };
  /** Everything that the permit ledger was asked here. */
  const asked: SubjectAsk[] = [];
  /** Everything that the usage ledger was asked here. */
  const charged: Charge[] = [];
  const ledger = { isAway: false, delay: undefined as (() => Promise<void>) | undefined };
  const watched: Store = {
    ...store,
    permitLanes: store.permitLanes.map((lane) => ({
      async exchange(asks) {
        asked.push(...asks);
        await ledger.delay?.();
        return lane.exchange(asks);
      },
    })),
    usageLanes: store.usageLanes.map((lane) => ({
      async settle(charges) {
        charged.push(...charges);
        await ledger.delay?.();
        return lane.settle(charges);
      },
    })),
  };
  const { served, coordinator } = buildLocalCore(watched, ambient, windowsMax);
  const shutdown = new AbortController();
  const streams = new FrontStreams();
  const listener = await startInternalListener({
    ...ambient,
    host: "127.0.0.1",
    port,
    access: { secrets: secret === undefined ? [] : [new Secret(secret)], tls },
    services: createCoreService({
      core: served,
      coordinator,
      streams,
      clock,
      log,
      isLedgerAway: () => ledger.isAway,
      ledgerPathMs: () => 0,
      lateMs: 1000,
      shutdownSignal: shutdown.signal,
    }),
  });
  const stop = async () => {
    shutdown.abort();
    await listener.close();
  };
  onTestFinished(stop);
  const address = `127.0.0.1:${listener.port}`;
  return { port: listener.port, address, store, asked, charged, metrics, streams, ledger, stop };
}

/** An edge's way to its coordinators. */
export interface TestEdge {
  readonly core: RemoteCore;
  readonly permits: PermitChannel;
}

interface EdgeOptions extends Partial<Pick<RemoteCoreOptions, "onChanged" | "onAnnounced">> {
  readonly secret?: string;
  readonly onRecall?: OnRecall;
  readonly clock?: Clock;
}

/** An edge of these coordinators, closed with the test. */
export function edgeAt(
  addresses: readonly string[],
  {
    secret,
    onRecall = () => {},
    onChanged = async () => {},
    onAnnounced,
    clock = systemClock,
    ...shown
  }: EdgeOptions & Omit<LinkCredentials, "secret"> = {},
): TestEdge {
  const core = new RemoteCore({
    addresses,
    credentials: () => ({ secret: secret === undefined ? undefined : new Secret(secret), ...shown }),
    waitingRoom: new WaitingRoom(50_000),
    onOldAnswer: () => {},
    onChanged,
    onAnnounced,
    clock,
    log,
  });
  onTestFinished(() => core.close());
  return { core, permits: core.joinPermits(onRecall) };
}

/** An edge's strict limits. */
export function limiterAt(addresses: readonly string[]): StrictLimiter & TestEdge {
  const edge = edgeAt(addresses, { onRecall: (keyId) => limiter.recall(keyId) });
  const limiter: StrictLimiter = new StrictLimiter({
    channel: edge.permits,
    clock: systemClock,
    metrics: createMetrics(),
    freeStandingMax: 1000,
    poolsMax: 100,
    timeoutMs: () => 5000,
    waitingRoom: new WaitingRoom(50_000),
  });
  onTestFinished(() => limiter.stop());
  return Object.assign(limiter, edge);
}
