import { createMetrics } from "../../src/ambient/metrics.ts";
import { CoalescingLanes, type GroupWeight, type SubjectGroup } from "../../src/batching/coalescing-lanes.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { TestClock } from "../support/test-clock.ts";
import { HeldCommits } from "./held-commits.ts";

export type Lane = HeldCommits<SubjectGroup<string>, string>;

/** Counts the waiting callers. The test sets how many may wait. */
class CountingLimit {
  readonly sameSubject: number[] = [];
  taken = 0;
  max = Number.POSITIVE_INFINITY;

  enter(sameSubject: number): Error | undefined {
    if (this.taken >= this.max) return new Unavailable("no place");
    this.sameSubject.push(sameSubject);
    this.taken++;
    return undefined;
  }

  leave(count: number): void {
    this.taken -= count;
  }
}

/** Lanes that commit when told to. A group's result is the key and its items; an answer is the result and the item. */
export function setUp({
  laneCount = 1,
  batchMax = 100,
  queueMax = 100,
  weight = undefined as GroupWeight<string> | undefined,
} = {}) {
  const held = Array.from(
    { length: laneCount },
    (): Lane => new HeldCommits((group) => `${group.subject}[${itemsOf(group).join()}]`),
  );
  const waitingLimit = new CountingLimit();
  const lanes = new CoalescingLanes<string, string, string>({
    name: "test",
    commits: held.map(({ commit }) => commit),
    splitResult(group, result) {
      if (result === "bad") throw new Unavailable("a bad row");
      const answers = itemsOf(group).map((item) => `${result}:${item}`);
      return result === "one less" ? answers.slice(1) : answers;
    },
    waitingLimit,
    weight,
    clock: new TestClock(),
    metrics: createMetrics(),
    bounds: { batchMax, queueMax },
  });
  return { lanes, held, lane: held[0] as Lane, waitingLimit };
}

export function submitAll(lanes: CoalescingLanes<string, string, string>, all: readonly string[]) {
  return all.map((each) => lanes.submit(each.slice(0, 1), each));
}

export const itemsOf = ({ callers }: SubjectGroup<string>) => callers.map(({ item }) => item);
export const groupsOf = (lane: Lane) =>
  lane.batches.map((batch) => batch.map((group) => [group.subject, ...itemsOf(group)]));
export const fulfilled = (value: string) => ({ status: "fulfilled", value });
export const rejected = (reason: Error) => ({ status: "rejected", reason });
