import { counterOfOwner } from "../../src/domain/subject.ts";
import { hourMs, refilled, remainingMax, settle, type UsageCounter } from "../../src/domain/usage.ts";
import { MemoryCounters } from "../support/memory-counters.ts";
import { updatedCounter } from "../support/memory-rules.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, manages, settleRule, updateRule } from "./break-store.ts";

/* Stores that get wrong what was spent. */

/** The counter after a change that leaves out some of what was put into it. */
function withCredit(counter: UsageCounter, credited: number): UsageCounter {
  return { ...counter, meter: { ...counter.meter, credited } };
}

/** Refills whose amount is counted in another way. */
function refillCounted(
  mistake: string,
  creditedFor: (before: UsageCounter, after: UsageCounter) => number,
): BrokenStore {
  return settleRule(mistake, (counter, run, nowMs, shared) => {
    const after = refilled(counter, nowMs);
    if (after === counter) return settle(counter, run, nowMs, shared);
    return settle(withCredit(after, creditedFor(counter, after)), run, nowMs, shared);
  });
}

function countersOf(mistake: string, Counters: typeof MemoryCounters): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { Counters }) };
}

export const brokenSpending: readonly BrokenStore[] = [
  refillCounted("does not count what a refill restores as put in", (before, after) =>
    after.refill?.carryOver ? after.meter.credited : before.meter.credited,
  ),
  refillCounted("does not count what a refill carries over as put in", (before, after) =>
    after.refill?.carryOver ? before.meter.credited : after.meter.credited,
  ),
  refillCounted("counts what a refill would have added beyond the bound", (before, after) =>
    after.remaining === remainingMax ? before.meter.credited + (after.refill?.amount ?? 0) : after.meter.credited,
  ),
  updateRule("counts a change of the balance as spending", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return typeof updated === "object" && counter ? withCredit(updated, counter.meter.credited) : updated;
  }),
  countersOf(
    "begins at nothing for a counter that is made again",
    class extends MemoryCounters {
      override make(subject: string, counter: UsageCounter): void {
        this.set(subject, counter);
      }
    },
  ),
  countersOf(
    "reads a counter after the first charge of an hour",
    class extends MemoryCounters {
      protected override readingOf(_before: UsageCounter, after: UsageCounter) {
        return super.readingOf({ ...after, meter: { ...after.meter, hour: -1 } }, after);
      }
    },
  ),
  countersOf(
    "reads no counter that is removed",
    class extends MemoryCounters {
      override remove(subject: string): void {
        this.delete(subject);
      }
    },
  ),
  countersOf(
    "counts uses of a counter that is made again into the next hour",
    class extends MemoryCounters {
      override make(subject: string, counter: UsageCounter, nowMs: number): void {
        super.make(subject, counter, nowMs + hourMs);
      }
    },
  ),
  countersOf(
    "forgets that an owner had the same id before",
    class extends MemoryCounters {
      override endReadings(): void {}
    },
  ),
  manages("finds the counter of an owner by its subject as the id of a key", (inner) => ({
    read(query) {
      if (query.kind !== "spending" || query.of === "owner") return inner.read(query);
      const ownerId = query.ids[0]?.split(counterOfOwner(""))[1];
      return inner.read(ownerId === undefined ? query : { ...query, of: "owner", ids: [ownerId] });
    },
  })),
  settleRule("charges hours that are over when the clock goes back", (counter, run, nowMs, shared) => {
    const behind = (each: UsageCounter) => ({ ...each, meter: { ...each.meter, hour: 0 } });
    return settle(behind(counter), run, nowMs, shared && behind(shared));
  }),
];
