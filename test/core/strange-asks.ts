import type { Question } from "../../src/core/wire.ts";
import { freeStandingSubject } from "../../src/domain/subject.ts";

const free = freeStandingSubject(
  { namespace: "n", identifier: "i", apiId: undefined },
  { mode: "strict", durationMs: 1000 },
);
const ask = (subject: string, sentRule?: { limit: number; durationMs: number }): Question => ({
  case: "permits",
  value: {
    subject,
    waiting: [{ cost: 1, count: 1 }],
    inAdvance: 0,
    gen: 0,
    returned: 0,
    spent: 0,
    ...(sentRule && { sentRule }),
  },
});

/** Asks for free-standing limits that no edge of ours sends. */
export const impossibleAsks: [string, Question][] = [
  ["a rule sent for a key", ask("key_1", { limit: 1000, durationMs: 1000 })],
  ["a rule sent for a limit of a key with a name", ask("key_1/minute", { limit: 1000, durationMs: 1000 })],
  ["a rule sent for an owner", ask("o/minute/owner", { limit: 1000, durationMs: 1000 })],
  ["no limit for a free-standing subject", ask(free)],
  ["a limit of 0", ask(free, { limit: 0, durationMs: 1000 })],
  ["a limit below 0", ask(free, { limit: -1, durationMs: 1000 })],
  ["a window of no time", ask(free, { limit: 1, durationMs: 0 })],
  ["a window of half a millisecond more", ask(free, { limit: 1, durationMs: 1000.5 })],
  ["a window without an end", ask(free, { limit: 1, durationMs: Number.POSITIVE_INFINITY })],
  ["a subject with a zero character", ask(`${free}\0`, { limit: 1, durationMs: 1000 })],
  ["a subject of 2 000 characters", ask(free.padEnd(2000, "x"), { limit: 1, durationMs: 1000 })],
  ["an empty subject", ask("")],
];
