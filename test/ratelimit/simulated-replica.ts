import { join } from "node:path";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { RateLimit, RateLimitState } from "../../src/domain/rate-limit.ts";
import type { WindowNews, WindowReport } from "../../src/domain/shared-window.ts";
import type { WindowTable } from "../../src/domain/window-table.ts";
import type { Permit } from "../../src/ratelimit/limiter.ts";
import type { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { TestClock } from "../support/test-clock.ts";
import { type Admission, ReplicaModel } from "./replica-model.ts";
import { Violation } from "./violation.ts";

/** What is under test: the product's own, or one with a mistake in it. */
export interface Product {
  readonly WindowTable: typeof import("../../src/domain/window-table.ts").WindowTable;
  readonly LocalLimiter: typeof import("../../src/ratelimit/local/local-limiter.ts").LocalLimiter;
  readonly MemoryHub: typeof import("../../src/ratelimit/local/window-hub.ts").MemoryHub;
  readonly saveWindows: typeof import("../../src/ratelimit/local/saved-windows.ts").saveWindows;
  readonly takeSavedWindows: typeof import("../../src/ratelimit/local/saved-windows.ts").takeSavedWindows;
}

export interface SimulatedKey {
  readonly id: string;
  rule: RateLimit;
  /** The only replica that it is used on. */
  readonly home: number | undefined;
}

export interface SentReport {
  readonly key: SimulatedKey;
  readonly slot: number;
  readonly report: WindowReport;
  readonly sentAtMs: number;
  /** A restarted replica does not get answers that were meant for the one before. */
  readonly life: number;
}

export interface ReplicaOptions {
  readonly product: Product;
  readonly name: string;
  readonly slotsMax: number;
  readonly nextGen: () => number;
  readonly random: SeededRandom;
  readonly folder: string;
}

interface Taken {
  /** With the rule that it was taken under. */
  readonly key: SimulatedKey;
  readonly permit: Permit;
  readonly admission: Admission;
  readonly model: ReplicaModel;
}

const metrics = createMetrics();

/** One replica of the product with clocks of its own, and for each of its keys the model that it is held against. */
export class SimulatedReplica {
  readonly name: string;
  isCutOff = false;
  readonly #options: ReplicaOptions;
  readonly #models = new Map<string, ReplicaModel>();
  readonly #told = new Map<string, WindowReport>();
  #taken: Taken[] = [];
  #clock: TestClock;
  #table: WindowTable;
  #limiter: LocalLimiter;
  #unixOffsetMs: number;
  #life = 0;

  constructor(options: ReplicaOptions) {
    this.name = options.name;
    this.#options = options;
    this.#clock = bootedClock(options.random, Date.UTC(2026, 0, 15) + options.random.integer(-1000, 1000));
    this.#table = new options.product.WindowTable(options.slotsMax, { nextGen: options.nextGen });
    this.#limiter = new options.product.LocalLimiter(this.#table, { clock: this.#clock, metrics });
    this.#unixOffsetMs = this.#clock.nowMs() - this.#nowMs;
  }

  /** One request. Undefined when the table is full. */
  take(key: SimulatedKey, cost = 1): boolean | undefined {
    const model = this.#modelOf(key);
    const nowMs = this.#nowMs;
    const { most, isExact } = model.remaining(key.rule.limit, nowMs);
    const permit = this.#tryTake(key, cost, model);
    if (permit === undefined) return undefined;
    const isAdmitted = permit.outcome === "admitted";
    if (isAdmitted && most < cost) throw new Violation(`${this.name} admitted one too many on ${key.id}`);
    if (!isAdmitted && isExact && most >= cost) throw new Violation(`${this.name} refused one of ${key.id} too early`);
    if (isAdmitted) this.#taken.push({ key: { ...key }, permit, model, admission: model.admit(key.rule, cost, nowMs) });
    this.#checkState(key, permit, isAdmitted ? 1 : cost);
    return isAdmitted;
  }

  /** Commits or releases one admitted permit. */
  settle(random: SeededRandom): void {
    const [taken] = this.#taken.splice(random.integer(0, Math.max(0, this.#taken.length - 1)), 1);
    if (taken === undefined) return;
    if (random.chance(0.4)) {
      taken.model.takeBack(taken.admission);
      // In one thread, always at once.
      this.#checkState(taken.key, taken.permit.release() as RateLimitState);
    } else {
      taken.admission.isHeld = false;
      taken.permit.commit();
    }
  }

  settleAll(random: SeededRandom): void {
    while (this.#taken.length > 0) this.settle(random);
  }

  /** The report of the key that it would send. */
  report(key: SimulatedKey): SentReport | undefined {
    const slot = this.#table.find(key.id);
    if (slot === undefined) return undefined;
    const report = this.#table.rows.report(slot, this.name, this.#nowMs);
    const objection = this.#modelOf(key).objectionTo(report, this.#nowMs);
    if (objection !== undefined) throw new Violation(`${this.name} on ${key.id}: ${objection}`);
    if (report === undefined) return undefined;
    const told = this.#told.get(key.id);
    if (told?.gen === report.gen && report.count < told.count) throw new Violation(`${this.name} reported less again`);
    this.#told.set(key.id, report);
    return { key, slot, report, sentAtMs: this.#nowMs, life: this.#life };
  }

  hear({ key, slot, report, sentAtMs, life }: SentReport, news: WindowNews): void {
    if (life !== this.#life || this.#table.find(key.id) !== slot) return;
    this.#table.rows.learn(slot, report, news, sentAtMs, this.#nowMs);
    this.#modelOf(key).hear(report, news, this.#nowMs);
  }

  advance(ms: number): void {
    this.#clock.advance(ms);
  }

  stepWallClock(ms: number): void {
    this.#clock.stepTo(this.#clock.nowMs() + ms);
  }

  followWallClock(): void {
    this.#limiter.followWallClock();
    const offsetMs = this.#clock.nowMs() - this.#nowMs;
    if (Math.abs(offsetMs - this.#unixOffsetMs) > 50) this.#unixOffsetMs = offsetMs;
  }

  sweep(): void {
    this.#table.sweep(this.#nowMs, this.#options.slotsMax);
    const open = [...this.#table.openWindows(this.#nowMs)].length;
    if (this.#table.size !== open) throw new Violation(`${this.name} keeps windows that are over`);
  }

  /** Ends as on SIGTERM and starts again as on a new boot; the wall clock goes on, and may be set, in between. */
  restart(goneMs: number, stepMs: number): void {
    const { product, folder, slotsMax, nextGen, random } = this.#options;
    const stoppedMs = this.#nowMs;
    const savedAtMs = this.#clock.nowMs();
    const file = join(folder, this.name);
    const open = [...this.#table.openWindows(stoppedMs)];
    product.saveWindows(file, { replica: this.name, windows: open }, savedAtMs);
    this.#clock = bootedClock(random, savedAtMs + goneMs + stepMs);
    const wallMs = this.#clock.nowMs();
    this.#unixOffsetMs = wallMs - this.#nowMs;
    this.#table = new product.WindowTable(slotsMax, { nextGen });
    this.#limiter = new product.LocalLimiter(this.#table, { clock: this.#clock, metrics });
    const saved = product.takeSavedWindows(file, wallMs);
    // Other replicas know its counts by its name. Without counts, the name does not matter.
    if (open.length > 0 && saved?.replica !== this.name) throw new Violation(`${this.name} lost its name`);
    for (const window of saved?.windows ?? []) this.#table.restore(window, this.#nowMs);
    if (product.takeSavedWindows(file, wallMs)) throw new Violation("saved windows were read twice");
    for (const model of this.#models.values()) model.restart(stoppedMs, wallMs - savedAtMs, this.#nowMs);
    // Restored windows may be reported as they were saved: what was under way then counts as used.
    this.#taken = [];
    this.#life++;
  }

  /** Everything that can be seen without taking anything. */
  check(keys: readonly SimulatedKey[]): void {
    for (const key of keys) this.#checkState(key, this.#limiter.peek(key.id, key.rule));
  }

  /** News has corrected the expected counts of the others: no request within the limit is refused. */
  checkExactly(key: SimulatedKey): void {
    const { most } = this.#modelOf(key).remaining(key.rule.limit, this.#nowMs);
    const { remaining } = this.#limiter.peek(key.id, key.rule);
    if (remaining !== most) throw new Violation(`${this.name}: ${remaining} of ${most} left of ${key.id}, all quiet`);
  }

  sharedUses(key: SimulatedKey): { gen: number | undefined; uses: number; others: number } | undefined {
    const model = this.#modelOf(key);
    const uses = model.sharedUses(this.#nowMs);
    return uses === 0 ? undefined : { gen: model.sharedGen, uses, others: model.othersKnown(this.#nowMs) };
  }

  /** Time until the key's next window ends; undefined when none is open. */
  nextEndInMs(key: SimulatedKey): number | undefined {
    const endMs = this.#modelOf(key).nextEndMs(this.#nowMs);
    return endMs === undefined ? undefined : endMs - this.#nowMs;
  }

  #checkState(key: SimulatedKey, { remaining, resetMs }: RateLimitState, cost = 1): void {
    const model = this.#modelOf(key);
    const { most, isExact } = model.remaining(key.rule.limit, this.#nowMs);
    const where = `${this.name} on ${key.id}, ${JSON.stringify(key.rule)}`;
    if (remaining > most || (isExact && remaining < most)) {
      throw new Violation(`${where}: ${remaining} remaining instead of ${most}`);
    }
    const resets = model.ends(key.rule, cost, this.#nowMs).map((endsMs) => Math.ceil(endsMs + this.#unixOffsetMs));
    if (!resets.includes(resetMs)) throw new Violation(`${where}: reset ${resetMs} instead of ${resets.join(" or ")}`);
  }

  #tryTake(key: SimulatedKey, cost: number, model: ReplicaModel): Permit | undefined {
    try {
      return this.#limiter.take(key.id, key.rule, cost);
    } catch (error) {
      // By its name: a broken product has an Unavailable of its own.
      if ((error as Error).constructor.name !== "Unavailable") throw error;
      if (model.isOpen(this.#nowMs))
        throw new Violation(`${this.name} has no place for ${key.id}, whose window is open`);
      if (this.#table.size < this.#options.slotsMax) throw new Violation(`${this.name} is not full and says it is`);
      return undefined;
    }
  }

  #modelOf(key: SimulatedKey): ReplicaModel {
    const model = this.#models.get(key.id) ?? new ReplicaModel(key.home !== undefined);
    this.#models.set(key.id, model);
    return model;
  }

  get #nowMs(): number {
    return this.#clock.monotonicMs();
  }
}

/** Monotonic time begins anywhere. Quarters of a millisecond: they are exact in binary, so that sums can be compared. */
function bootedClock(random: SeededRandom, wallMs: number): TestClock {
  const monotonicMs = random.integer(0, 4_000_000) / 4;
  const clock = new TestClock(wallMs - monotonicMs);
  clock.advance(monotonicMs);
  return clock;
}
