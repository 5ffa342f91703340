import { describe, expect, it } from "vitest";
import { isDeep, sized } from "../support/deep.ts";
import type { KnownCounter } from "../support/priced-load.ts";
import { type StartBreakable, startEmbedded, startReplicasAndEdge } from "../support/spending/services.ts";
import { SpendingTrial } from "../support/spending/trial.ts";
import { hasPostgres } from "../support/test-database.ts";

interface Variant {
  readonly name: string;
  readonly start: StartBreakable;
  /** Of the faults, one of each kind. */
  readonly inSmallForm?: readonly string[];
  /** How often everything breaks. */
  readonly rounds: number;
  readonly uses: number;
}

/** `npm run soak -- usage` makes a million. */
const uses = sized(300, 12_000);
const callersLoseAnswers = "answers to callers are cut";

const embedded: readonly Variant[] = [
  { name: "one process on the embedded store", start: startEmbedded(1), rounds: sized(1, 4), uses },
  { name: "workers on the embedded store", start: startEmbedded(2), rounds: 2, uses: 3_000 },
];
const onPostgres: Variant = {
  name: "three replicas and an edge on Postgres",
  start: startReplicasAndEdge,
  inSmallForm: ["a replica is killed", "answers of the ledger are cut", callersLoseAnswers],
  rounds: sized(1, 4),
  uses,
};
const onServers = hasPostgres ? [onPostgres] : [];
/** Of the embedded store, `test/faults/crash.test.ts` shows the same of what is left. */
const variants = isDeep ? [...embedded, ...onServers] : [...onServers, ...embedded].slice(0, 1);

describe.each(variants)("what counters have spent by $name", ({ start, inSmallForm, rounds, uses }) => {
  const title = `is what left the ledger in each hour, and no less than callers know of ${uses} uses, whatever breaks`;
  it(title, { retry: 0 }, async () => {
    const faults = isDeep ? undefined : inSmallForm;
    const trial = await SpendingTrial.run({ start, uses, rounds, seed: 17, faults });
    const { counters, answers } = trial.load;
    const knowing = (known: (counter: KnownCounter) => Partial<KnownCounter>) =>
      new Map([...counters].map(([subject, counter]) => [subject, { ...counter, ...known(counter) }]));

    // The control: some uses in doubt were charged, so that those which callers know of are too few.
    const knownOnly = knowing(() => ({ open: 0 }));
    while ((await trial.problems(knownOnly)).length === 0) await trial.runFault(callersLoseAnswers);
    expect(await trial.problems(knownOnly)).toContainEqual(expect.stringContaining("and 0 in doubt"));
    console.log(JSON.stringify(answers), `${trial.service.cuts()} answers cut`);
    // Otherwise nothing has been shown.
    for (const answer of ["USAGE_EXCEEDED of owner", "unknown"]) expect(answers[answer], answer).toBeGreaterThan(0);

    // Further ones: a use that is lost, one too many, one in the wrong hour, and a change of the balance that is spending.
    const { tables } = trial.service;
    const [lost, more, moved, changed] = [...counters].filter(([, { of }]) => of === "key").map(([subject]) => subject);
    const told = (subject: string | undefined, uses: (counter: KnownCounter) => number) =>
      trial.problems(knowing((counter) => (counter.id === subject ? { acknowledged: uses(counter) } : {})));
    expect(await told(lost, ({ acknowledged, open }) => acknowledged + open + 1)).toEqual([
      expect.stringContaining(`${lost} has lost`),
    ]);
    expect(await told(more, ({ acknowledged, open }) => acknowledged - open - 1)).toEqual([
      expect.stringMatching(`${more} has spent .* in doubt`),
    ]);
    await tables.run(`UPDATE readings SET spent = spent + 1 WHERE subject = '${moved}'
      AND hour = (SELECT max(hour) FROM readings WHERE subject = '${moved}')`);
    await tables.run(`UPDATE counters SET credited = credited + 1 WHERE subject = '${changed}'`);
    const problems = await trial.problems();
    const isOf = (subject: string | undefined) => problems.filter((problem) => problem.startsWith(`${subject}: `));
    expect(isOf(moved).length).toBe(2);
    for (const what of ["what was spent", "the sum of all hours"])
      expect(isOf(changed)).toContainEqual(expect.stringContaining(what));
  });
});
