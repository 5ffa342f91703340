import { type Clock, systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { RateLimit } from "../../../src/domain/rate-limit.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { Coordinator } from "../../../src/ratelimit/coordinator/coordinator.ts";
import type { PermitChannel } from "../../../src/ratelimit/permit-channel.ts";
import { StrictLimiter } from "../../../src/ratelimit/strict/strict-limiter.ts";
import type { PermitEngine } from "../../../src/store/permit-ledger.ts";
import type { Store } from "../../../src/store/store.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, deleteKey, setRateLimit } from "../manage.ts";
import { TestClock } from "../test-clock.ts";
import { atTestEnd } from "../test-end.ts";
import type { StrictAnswer, StrictRule } from "./book.ts";
import type { StrictReplica } from "./load.ts";

export interface HarnessOptions {
  /** Closed by the test that opened it. */
  readonly store: Store;
  readonly rules: readonly StrictRule[];
  readonly replicas: number;
  /** Coordinators that all replicas reach; by default each replica has one of its own, as all-in-one servers do. */
  readonly coordinators?: number;
  /** What a coordinator sees of a lane. */
  readonly engine?: (lane: PermitEngine, coordinator: number) => PermitEngine;
  /** What a replica sees of the coordinators, of which the first is its own. */
  readonly channel?: (own: PermitChannel, others: readonly PermitChannel[]) => PermitChannel;
  readonly clock?: (replica: number) => Clock;
  /** How long a verification waits for a permit. By default as long as the server lets it. */
  readonly timeoutMs?: number;
}

/** Strict limits as the server puts them together, without sockets: for what is to be broken, or asked very often. */
export class StrictHarness {
  readonly replicas: readonly HarnessReplica[];
  readonly keyIds: readonly string[];
  /** Refusals while another replica held the last permits. */
  unsettledRefusals = 0;
  readonly #store: Store;
  readonly #rules: (RateLimit | undefined)[];

  static async start(options: HarnessOptions): Promise<StrictHarness> {
    const keys = options.rules.map((rule) => sampleKey(new TestClock(), { rateLimit: { mode: "strict", ...rule } }));
    for (const key of keys) await createKey(options.store.management, key);
    const harness = new StrictHarness(
      options,
      keys.map(({ id }) => id),
    );
    atTestEnd(() => harness.stop());
    return harness;
  }

  private constructor(options: HarnessOptions, keyIds: readonly string[]) {
    const { store, rules, clock = () => systemClock, engine = (lane) => lane, channel = (own) => own } = options;
    this.#store = store;
    this.keyIds = keyIds;
    this.#rules = rules.map((rule) => ({ mode: "strict", ...rule }));
    const coordinators = Array.from({ length: options.coordinators ?? options.replicas }, (_, i) => {
      const lanes = store.permitLanes.map((lane) => engine(lane, i));
      return new Coordinator(lanes, { clock: clock(i), metrics: createMetrics() });
    });
    this.replicas = Array.from({ length: options.replicas }, (_, i) => {
      const onRecall = (keyId: string) => limiter.recall(keyId);
      const inOrder = coordinators.map((_, n) => coordinators[(i + n) % coordinators.length] as Coordinator);
      const [own, ...others] = inOrder.map((coordinator) => coordinator.join(onRecall));
      const limiter: StrictLimiter = new StrictLimiter({
        waitingRoom: new WaitingRoom(50_000),
        channel: channel(own as PermitChannel, others),
        clock: clock(i),
        metrics: {
          ...createMetrics(),
          deniedUnsettled: (count = 1) => {
            this.unsettledRefusals += count;
          },
        },
        freeStandingMax: 1000,
        poolsMax: 10_000,
        timeoutMs: () => options.timeoutMs ?? 450,
      });
      return new HarnessReplica(limiter, (key) => ({ keyId: keyIds[key] as string, rule: this.#rules[key] }));
    });
  }

  /** Changes a key's limit in the store; the replicas hear of it unless they are not to. */
  async setRateLimit(key: number, rule: RateLimit | undefined, told = this.replicas): Promise<void> {
    const keyId = this.keyIds[key] as string;
    await setRateLimit(this.#store.management, keyId, rule);
    this.#rules[key] = rule;
    for (const { limiter } of told) limiter.holderChanged(keyId);
  }

  async deleteKey(key: number, told = this.replicas): Promise<void> {
    const keyId = this.keyIds[key] as string;
    await deleteKey(this.#store.management, keyId);
    for (const { limiter } of told) limiter.holderChanged(keyId);
  }

  async stop(): Promise<void> {
    await Promise.all(this.replicas.map(({ limiter }) => limiter.stop()));
  }
}

/** One replica's limiter, asked as a verification asks it. */
export class HarnessReplica implements StrictReplica {
  readonly limiter: StrictLimiter;
  readonly #find: (key: number) => { keyId: string; rule: RateLimit | undefined };

  constructor(limiter: StrictLimiter, find: (key: number) => { keyId: string; rule: RateLimit | undefined }) {
    this.limiter = limiter;
    this.#find = find;
  }

  async ask(key: number, cost = 1): Promise<StrictAnswer> {
    const { keyId, rule } = this.#find(key);
    if (rule?.mode !== "strict") return { outcome: "odd", what: `key ${key} has no strict limit` };
    try {
      const permit = await this.limiter.take(keyId, rule, cost);
      if (permit.outcome === "missing") return { outcome: "odd", what: `key ${key} is missing` };
      permit.commit();
      const { outcome, limit, remaining, resetMs } = permit;
      return { outcome, limit, remaining, resetMs };
    } catch (error) {
      if (error instanceof Unavailable) return { outcome: "unavailable" };
      throw error;
    }
  }
}
