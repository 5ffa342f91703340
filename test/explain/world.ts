import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";
import type { Ambient } from "../../src/ambient/ambient.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { Coordinator } from "../../src/ratelimit/coordinator/coordinator.ts";
import type { InspectingLimiter } from "../../src/ratelimit/limiter.ts";
import { limiterByMode } from "../../src/ratelimit/limiter.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import type { PermitChannel } from "../../src/ratelimit/permit-channel.ts";
import { StrictLimiter } from "../../src/ratelimit/strict/strict-limiter.ts";
import { CachedOwners } from "../../src/store/cached-owners.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Management } from "../../src/store/management.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createVerifyKey, type VerifyKey } from "../../src/usecases/verify-key.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { TestClock } from "../support/test-clock.ts";
import { atTestEnd } from "../support/test-end.ts";

const tickMs = 5;
/** Turns in which nothing goes on: then what is left waits for time to pass. */
const quietTurns = 4;

/** One replica in this process: its own pools and local windows, on the store of all. */
export interface Replica {
  readonly verifyKey: VerifyKey;
  readonly limiter: InspectingLimiter;
  readonly channel: PermitChannel;
  /** By the id of a key, or the counter of an owner. */
  holderChanged(holder: string): void;
  /** From then on it says nothing and hears nothing: what it holds is lost. */
  kill(): void;
  stop(): Promise<void>;
}

/** Replicas on one embedded store, whose time passes when nothing else goes on. */
export class World {
  readonly clock: TestClock;
  readonly management: Management;
  readonly #ambient: Pick<Ambient, "clock" | "metrics">;
  readonly #store: Store;
  readonly #file: DatabaseSync;
  /** Calls of the store without an answer. */
  #underWay = 0;
  /** Resolves with the next answer. */
  #answered = Promise.withResolvers<void>();

  private constructor(store: Store, file: string, clock: TestClock) {
    this.clock = clock;
    this.#ambient = { clock, metrics: createMetrics() };
    this.#store = store;
    this.#file = new DatabaseSync(file, { readOnly: true });
    const { management } = store;
    this.management = {
      change: (...args) => this.#noted(management.change(...args)),
      read: (query) => this.#noted(management.read(query)),
    };
  }

  static async open(): Promise<World> {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
    atTestEnd(() => void vi.useRealTimers());
    const clock = new TestClock();
    const file = join(tempFolder(), "latchkey.db");
    const store = await openSqliteStore({
      file,
      clock,
      windowClock: clock,
      metrics: createMetrics(),
      log: createLog("error", () => {}),
      onDeath: (cause) => {
        throw cause;
      },
    });
    atTestEnd(() => store.close());
    return new World(store, file, clock);
  }

  newCoordinator(): Coordinator {
    const lanes = this.#store.permitLanes.map((lane) => ({
      exchange: (asks: Parameters<typeof lane.exchange>[0]) => this.#noted(lane.exchange(asks)),
    }));
    return new Coordinator(lanes, this.#ambient);
  }

  newReplica(coordinator: Coordinator): Replica {
    let isDead = false;
    const joined = coordinator.join((subject) => {
      if (!isDead) strict.recall(subject);
    });
    const channel: PermitChannel = {
      exchange: (...args) => (isDead ? new Promise(() => {}) : joined.exchange(...args)),
      inspect: (subject) => joined.inspect(subject),
      close: () => joined.close(),
    };
    const waitingRoom = new WaitingRoom(100_000);
    const bounds = { poolsMax: 100_000, freeStandingMax: 1 };
    const strict = new StrictLimiter({ ...this.#ambient, ...bounds, channel, waitingRoom, timeoutMs: () => 450 });
    const limiter = limiterByMode({ local: new LocalLimiter(new WindowTable(5000), this.#ambient), strict });
    const lanes = this.#store.usageLanes.map((lane) => ({
      settle: (charges: Parameters<typeof lane.settle>[0]) => this.#noted(lane.settle(charges)),
    }));
    const owners = new CachedOwners(this.#store.keys, { ttlMs: 0, keysMax: 1, waitingRoom }, this.#ambient);
    const usage = new CoalescingUsageLedger(lanes, { ...this.#ambient, waitingRoom });
    return {
      verifyKey: createVerifyKey({ clock: this.clock, keys: this.#store.keys, owners, limiter, usage }),
      limiter,
      channel,
      holderChanged: (holder) => strict.holderChanged(holder),
      kill() {
        isDead = true;
        joined.close();
      },
      stop: () => strict.stop(),
    };
  }

  /** What is counted under subjects with this in them: counters, and of windows all that returning permits does not change. */
  rows(part: string): { readonly counters: readonly unknown[]; readonly windows: readonly unknown[] } {
    return {
      counters: this.#file.prepare(`SELECT * FROM counters ${having}`).all(part),
      windows: this.#file.prepare(`SELECT ${windowColumns} FROM permit_windows ${having}`).all(part),
    };
  }

  /** Pools return what they do not need, each by itself. */
  async calmDown(): Promise<void> {
    for (let i = 0; i < 20; i++) {
      await this.#pass(200);
      await this.settle(nextTurn());
    }
  }

  /** One tick, in which more time may pass than a tick takes. */
  async #pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await vi.advanceTimersByTimeAsync(tickMs);
  }

  /** Waits for the work. Time passes only while all of it waits for that. */
  readonly settle = async <Value>(work: Promise<Value>): Promise<Value> => {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    for (let quiet = 0; !isOver || this.#underWay > 0; quiet++) {
      if (this.#underWay > 0) {
        await this.#answered.promise;
        quiet = 0;
      }
      await nextTurn();
      if (quiet >= quietTurns && this.#underWay === 0 && !isOver) await this.#pass(tickMs);
    }
    return work;
  };

  async #noted<Value>(answer: Promise<Value>): Promise<Value> {
    this.#underWay++;
    try {
      return await answer;
    } finally {
      this.#underWay--;
      this.#answered.resolve();
      this.#answered = Promise.withResolvers();
    }
  }
}

const having = "WHERE instr(subject, ?) > 0 ORDER BY subject";
const windowColumns =
  "subject, gen, ends_at_ms, window_duration_ms, clamped_ends_at_ms, contended, rule_limit, rule_duration_ms";
