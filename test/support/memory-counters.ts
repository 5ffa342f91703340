import type { NewKey } from "../../src/domain/key.ts";
import { counterOfOwner } from "../../src/domain/subject.ts";
import {
  hourAt,
  type MeterReading,
  readingBetween,
  refilled,
  settle,
  spentOf,
  type UsageCounter,
} from "../../src/domain/usage.ts";
import type { SpendingAnswer, SpendingQuery, SpendingReadings } from "../../src/store/queries.ts";
import { type Charge, type ChargeResult, refilledAhead, sharedBalance } from "../../src/store/usage-ledger.ts";

/** A key or an owner: its APIs; undefined: all. */
interface Holder {
  readonly apiIds: readonly string[] | undefined;
}

export function apisOf(key: Pick<NewKey, "apiId">): Holder;
export function apisOf(key: Pick<NewKey, "apiId"> | undefined): Holder | undefined;
export function apisOf(key: Pick<NewKey, "apiId"> | undefined): Holder | undefined {
  return key && { apiIds: [key.apiId] };
}

/** Whose counter was removed, by the APIs of the key or owner; undefined: of all. */
interface LastReading {
  readonly apiIds?: readonly string[] | undefined;
  /** What owners had spent who had the same id before. */
  readonly formerSpent?: number;
}

/** The usage counters of the plain store. */
export class MemoryCounters extends Map<string, UsageCounter> {
  readonly #settle: typeof settle;
  readonly #readings = new Map<string, (MeterReading & LastReading)[]>();

  constructor(rule = settle) {
    super();
    this.#settle = rule;
  }

  settle(charge: Charge, nowMs: number): ChargeResult {
    const { subject, shared } = charge;
    const counter = this.get(subject);
    const other = shared === undefined ? undefined : this.get(shared);
    if (counter === undefined || (shared !== undefined && other === undefined)) return { outcome: "missing" };
    const settled = this.#settle(counter, charge, nowMs, other);
    this.#charge(subject, counter, settled.counter);
    if (shared !== undefined && other && settled.shared) this.#charge(shared, other, settled.shared);
    return {
      outcome: "settled",
      granted: settled.granted,
      remaining: settled.counter.remaining,
      ...sharedBalance(settled.shared?.remaining),
      ...refilledAhead(settled.refilledAheadMs),
    };
  }

  #charge(subject: string, before: UsageCounter, after: UsageCounter): void {
    this.set(subject, after);
    const reading = this.readingOf(before, after);
    if (reading === undefined) return;
    const readings = this.#readingsOf(subject);
    readings.push(reading);
    readings.sort((a, b) => a.hour - b.hour);
  }

  protected readingOf(before: UsageCounter, after: UsageCounter): MeterReading | undefined {
    return readingBetween(before, after);
  }

  #readingsOf(subject: string): (MeterReading & LastReading)[] {
    const readings = this.#readings.get(subject) ?? [];
    this.#readings.set(subject, readings);
    return readings;
  }

  /** A new counter, which goes on where the last one of its subject has ended. */
  make(subject: string, counter: UsageCounter, nowMs: number): void {
    const { meter, remaining } = counter;
    const readings = this.#readingsOf(subject);
    const last = readings.at(-1);
    // Uses of this hour count into this hour.
    while ((readings.at(-1)?.hour ?? 0) > hourAt(nowMs)) readings.pop();
    const { spent = 0, formerSpent = 0 } = last ?? {};
    const hour = readings.at(-1)?.hour ?? 0;
    this.set(subject, { ...counter, meter: { ...meter, credited: remaining + spent, hour, formerSpent } });
  }

  /** To what an update has made of it; undefined: it is removed. */
  change(subject: string, counter: UsageCounter | undefined, holder: Holder, nowMs: number): void {
    if (counter === undefined) this.remove(subject, holder, nowMs);
    else if (this.has(subject)) this.set(subject, counter);
    else this.make(subject, counter, nowMs);
  }

  remove(subject: string, holder: Holder, nowMs: number): void {
    const counter = this.get(subject);
    this.delete(subject);
    if (counter === undefined || spentOf(counter) === 0) return;
    const readings = this.#readingsOf(subject);
    const next = hourAt(nowMs) + 1;
    const hour = counter.meter.hour > next ? counter.meter.hour + 1 : next;
    const raised = readings.at(-1)?.hour === hour ? readings.pop() : undefined;
    const { formerSpent } = counter.meter;
    readings.push({ ...raised, hour, spent: spentOf(counter), formerSpent, ...holder });
  }

  /** What was spent until now under this subject belongs to an owner that is gone. */
  endReadings(subject: string): void {
    const readings = this.#readingsOf(subject);
    const last = readings.pop();
    if (last !== undefined) readings.push({ ...last, formerSpent: last.spent });
  }

  /** `holderOf`: undefined for one that is gone. */
  read(query: SpendingQuery, holderOf: (id: string) => Holder | undefined, nowMs: number): SpendingAnswer {
    const counters = query.ids.map((id) => {
      const subject = query.of === "owner" ? counterOfOwner(id) : id.includes("/") ? "" : id;
      return this.#spending(query, subject, holderOf(id), nowMs);
    });
    return { nowMs, counters, kept: { firstHour: 0, firstDayHour: 0 } };
  }

  #spending(
    { hours, apiIds }: SpendingQuery,
    subject: string,
    holder: Holder | undefined,
    nowMs: number,
  ): SpendingReadings | undefined {
    const readings = this.#readings.get(subject) ?? [];
    const { apiIds: concerned } = holder ?? readings.at(-1) ?? {};
    const isVisible = apiIds === undefined || concerned?.every((apiId) => apiIds.includes(apiId)) === true;
    if (!isVisible) return undefined;
    const counter = this.get(subject);
    const former = apiIds === undefined ? 0 : (counter?.meter.formerSpent ?? readings.at(-1)?.formerSpent ?? 0);
    const spent = counter === undefined ? (readings.at(-1)?.spent ?? 0) : spentOf(counter);
    const next = hourAt(nowMs) + 1;
    const before = (hour: number) =>
      readings.find((reading) => reading.hour >= hour && reading.hour <= next)?.spent ?? spent;
    return {
      counter: counter && refilled(counter, nowMs),
      spent: Math.max(former, spent),
      spentBefore: hours.map((hour) => Math.max(former, before(hour))),
    };
  }
}
