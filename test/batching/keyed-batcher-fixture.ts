import { createMetrics } from "../../src/ambient/metrics.ts";
import { type BatchEntry, KeyedBatcher, type KeyedBatcherOptions } from "../../src/batching/keyed-batcher.ts";
import { Deadline } from "../../src/domain/deadlines.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { TestClock } from "../support/test-clock.ts";
import { HeldCommits } from "./held-commits.ts";

/** The callers of one key. The result of "bad" cannot be handed out. */
export class TestEntry implements BatchEntry<string> {
  readonly key: string | undefined;
  readonly deadline: Deadline | undefined;
  readonly callers: Caller[] = [];

  constructor(key: string | undefined, deadline?: Deadline) {
    this.key = key;
    this.deadline = deadline;
  }

  get items(): string[] {
    return this.callers.map(({ item }) => item);
  }

  join(item: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.callers.push({ item, resolve, reject });
    });
  }

  resolve(result: string): void {
    if (result === "bad") throw new Unavailable("a bad row");
    for (const { item, resolve } of this.callers) resolve(`${result}:${item}`);
  }

  reject(error: unknown): void {
    for (const { reject } of this.callers) reject(error);
  }
}

interface Caller {
  readonly item: string;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: unknown) => void;
}

export type Options = KeyedBatcherOptions<TestEntry, string>;
export type Lane = HeldCommits<TestEntry, string>;

interface SetUp extends Partial<Omit<Options, "commits">> {
  readonly laneCount?: number;
  readonly queuedMs?: number;
  /** Makes, as a control, a batcher that breaks a promise. */
  readonly broken?: (options: Options) => Options;
}

/** A batcher whose commits end when the test says so. An entry's result is its key with its items. */
export function setUp({ laneCount = 1, queuedMs, broken = (options) => options, ...changed }: SetUp = {}) {
  const held = Array.from(
    { length: laneCount },
    (): Lane => new HeldCommits(({ key = "", items }) => `${key}[${items.join()}]`),
  );
  const committed: { entries: number; seconds: number }[] = [];
  const clock = new TestClock();
  const batchCommitted = (_: string, entries: number, seconds: number) => void committed.push({ entries, seconds });
  const commits = held.map(({ commit }) => commit);
  const metrics = { ...createMetrics(), batchCommitted };
  const batcher = new KeyedBatcher<TestEntry, string>(broken({ name: "test", commits, clock, metrics, ...changed }));
  const add = (key: string | undefined, item: string): Promise<string> => {
    const entry = new TestEntry(key, queuedMs === undefined ? undefined : new Deadline(clock, queuedMs));
    const answer = entry.join(item);
    batcher.add(entry);
    return answer;
  };
  /** As callers do: the key is the item's first letter. */
  const submit = (item: string): Promise<string> =>
    batcher.waiting(item.slice(0, 1))?.join(item) ?? add(item.slice(0, 1), item);
  return {
    batcher,
    held,
    lane: held[0] as Lane,
    committed,
    clock,
    submit,
    submitAll: (items: readonly string[]) => items.map(submit),
    /** An entry without a key. */
    submitAlone: (item: string) => add(undefined, item),
  };
}

/** The batches of a lane: the items of each entry. */
export const batchesOf = (lane: Lane) => lane.batches.map((batch) => batch.map(({ items }) => items.join()));
export const fulfilled = (value: string) => ({ status: "fulfilled", value });
export const rejected = (reason: Error) => ({ status: "rejected", reason });
