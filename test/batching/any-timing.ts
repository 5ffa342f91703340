import fc from "fast-check";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { type Options, setUp, TestEntry } from "./keyed-batcher-fixture.ts";
import { nextTurn } from "./next-turn.ts";

/** A letter is a caller of that key; "b?" gets a result that cannot be handed out. "late" is a caller that gave up. */
export const steps = fc.array(fc.constantFrom("a", "b", "b?", "c", "late", "turn", "finish", "fail"), {
  maxLength: 60,
});

const queueMax = 2;
const lostReply = new Unavailable("it fails");

/** Leaves out the callers that have given up. */
function takeWanted(entry: TestEntry): boolean {
  const wanted = entry.callers.splice(0).filter(({ item, resolve }) => {
    if (item.endsWith("late")) resolve("not executed");
    return !item.endsWith("late");
  });
  entry.callers.push(...wanted);
  return wanted.length > 0;
}

/** Plays the steps, and answers which promises of a batcher were broken. `broken` makes a batcher that breaks one. */
export async function playSteps(
  played: readonly string[],
  batchMax: number,
  broken?: (options: Options) => Options,
): Promise<readonly string[]> {
  const { batcher, lane, submit } = setUp({ batchMax, queueMax, take: takeWanted, ...(broken && { broken }) });
  const violations = new Set<string>();
  const items: string[] = [];
  const outcomes = new Map<string, string>();
  const failed: (readonly TestEntry[])[] = [];
  /** Whose commits have ended well. */
  let done = 0;
  const finish = async () => {
    const batch = lane.batches[done + failed.length] as readonly TestEntry[];
    done++;
    await lane.finishWith(
      batch.map(({ key, items }) => (items.some((item) => item.endsWith("?")) ? "bad" : `${key}[${items.join()}]`)),
    );
  };
  const check = () => {
    if (lane.underWay > 1) violations.add("two batches are under way");
    const sent = new Set(lane.batches.flat().flatMap((entry) => entry.items));
    const waiting = items.filter((item) => !sent.has(item) && !outcomes.has(item) && !item.endsWith("late"));
    if (new Set(waiting.map(([key]) => key)).size > queueMax) violations.add("too many entries wait");
  };
  for (const step of played) {
    if (step === "finish" && lane.underWay > 0) await finish();
    else if (step === "fail" && lane.underWay > 0) {
      failed.push(lane.batches[done + failed.length] as readonly TestEntry[]);
      await lane.fail(lostReply);
    } else if (["turn", "finish", "fail"].includes(step)) await nextTurn();
    else {
      const item = step === "late" ? `a${items.length}late` : step.replace(/^./, (key) => `${key}${items.length}`);
      items.push(item);
      const note = (outcome: string) => void outcomes.set(item, outcome);
      submit(item).then(note, (error: Error) => note(error.message));
      // A refusal is noted after the next turn.
      continue;
    }
    check();
  }
  await nextTurn();
  // A batcher that sends batches again would never come to an end by itself.
  for (let left = 100; lane.underWay > 0 && left > 0; left--) await finish();
  await batcher.drained();
  await nextTurn();
  for (const found of violationsOf(lane.batches, items, outcomes)) violations.add(found);
  return [...violations];
}

function violationsOf(
  batches: readonly (readonly TestEntry[])[],
  items: readonly string[],
  outcomes: ReadonlyMap<string, string>,
): string[] {
  const found: string[] = [];
  const sent = batches.flat().flatMap((entry) => entry.items);
  for (const batch of batches)
    if (new Set(batch.map(({ key }) => key)).size < batch.length) found.push("a key is twice in one batch");
  if (new Set(sent).size < sent.length) found.push("something is committed twice");
  if (sent.some((item) => item.endsWith("late"))) found.push("something unwanted is committed");
  for (const key of ["a", "b", "c"]) {
    const own = sent.filter((item) => item.startsWith(key));
    if (own.join() !== items.filter((item) => own.includes(item)).join()) found.push("a key is out of order");
  }
  if (items.some((item) => !outcomes.has(item))) found.push("a caller has no answer");
  for (const [item, outcome] of outcomes) {
    const entry = batches.flat().find((each) => each.items.includes(item));
    const own = `${entry?.key}[${entry?.items.join()}]:${item}`;
    if (outcome === "a bad row" && !entry?.items.some((each) => each.endsWith("?")))
      found.push("a bad entry fails others");
    else if (outcome === "the test queue is full" && entry !== undefined) found.push("something refused is committed");
    else if (![own, "a bad row", "it fails", "the test queue is full", "not executed"].includes(outcome))
      found.push("a caller has the answer of another");
  }
  return found;
}

/** The first caller alone, and the others. */
function splitEntry(entry: TestEntry): TestEntry[] {
  const [first, others] = [new TestEntry(entry.key), new TestEntry(entry.key)];
  first.callers.push(...entry.callers.slice(0, 1));
  others.callers.push(...entry.callers.slice(1));
  return [first, others];
}

/** Batchers that break one promise each. */
export const brokenBatchers: Readonly<Record<string, (options: Options) => Options>> = {
  "two batches are under way": (options) => ({ ...options, batchesMax: 2 }),
  "too many entries wait": (options) => ({ ...options, queueMax: 100 }),
  "a key is twice in one batch": ({ commits, ...options }) => ({
    ...options,
    commits: commits.map((commit) => (batch) => {
      const split = batch.flatMap((entry) => (entry.callers.length > 1 ? splitEntry(entry) : [entry]));
      return commit(split).then((results) => results.slice(0, batch.length));
    }),
  }),
  "something is committed twice": ({ commits, ...options }) => ({
    ...options,
    commits: commits.map((commit) => (batch) => commit(batch).catch(() => commit(batch))),
  }),
  "something unwanted is committed": (options) => ({ ...options, take: () => true }),
  "a key is out of order": (options) => ({
    ...options,
    take(entry) {
      entry.callers.reverse();
      return takeWanted(entry);
    },
  }),
  "a caller has no answer": (options) => ({
    ...options,
    take: (entry) => takeWanted(entry) && entry.items.length < 3,
  }),
  "a bad entry fails others": ({ commits, ...options }) => ({
    ...options,
    commits: commits.map((commit) => async (batch) => {
      const results = await commit(batch);
      if (results.includes("bad")) throw new Unavailable("a bad row");
      return results;
    }),
  }),
  "something refused is committed": ({ commits, ...options }) => ({
    ...options,
    commits: commits.map((commit) => (batch) => {
      for (const { callers } of batch.slice(1))
        for (const { reject } of callers) reject(new Error("the test queue is full"));
      return commit(batch);
    }),
  }),
  "a caller has the answer of another": ({ commits, ...options }) => ({
    ...options,
    commits: commits.map((commit) => async (batch) => (await commit(batch)).toReversed()),
  }),
};
