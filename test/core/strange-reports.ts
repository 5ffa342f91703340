import type { Question } from "../../src/core/wire.ts";
import { freeStandingSubject } from "../../src/domain/subject.ts";

const monthMs = 2_592_000_000;
const whole = {
  subject: "k",
  replica: "odd",
  gen: 1,
  count: 5,
  endsInMs: 60_000,
  durationMs: 60_000,
  previousGen: 0,
  apiId: "api",
};

const reports = (...given: readonly object[]): Question => ({
  case: "windows",
  value: { reports: given.map((each) => ({ ...whole, ...each })) },
});

const longest = freeStandingSubject(
  { namespace: "n".repeat(64), identifier: "😀".repeat(255), apiId: "a".repeat(255) },
  { mode: "local", durationMs: monthMs },
);

/** What no edge of ours reports of a window. */
export const impossibleReports: [string, Question][] = [
  ["a count below nothing", reports({ count: -1 })],
  ...[-1, 0, 0.5, monthMs + 1, 1e300, Number.NaN, Number.POSITIVE_INFINITY].map((endsInMs): [string, Question] => [
    `a window that ends in ${endsInMs} ms`,
    reports({ endsInMs }),
  ]),
  ...[-1, 0, 999, 1000.5, monthMs + 1, Number.NaN, Number.POSITIVE_INFINITY].map((durationMs): [string, Question] => [
    `a window of ${durationMs} ms`,
    reports({ durationMs }),
  ]),
  ...[-1, 0.5, 2 ** 53, 1e300, Number.NaN].flatMap((gen): [string, Question][] => [
    [`the window ${gen}`, reports({ gen })],
    [`the window after ${gen}`, reports({ previousGen: gen })],
  ]),
  ...["subject", "replica", "apiId"].flatMap((name): [string, Question][] => [
    [`an empty ${name}`, reports({ [name]: "" })],
    [`a zero character in the ${name}`, reports({ [name]: "k\0" })],
    [`a ${name} of a megabyte`, reports({ [name]: "k".repeat(1_000_000) })],
  ]),
  ["a subject of 651 characters", reports({ subject: "k".repeat(651) })],
  ["a replica of 256 characters", reports({ replica: "r".repeat(256) })],
  ["an API of 256 characters", reports({ apiId: "a".repeat(256) })],
  ["a good report before a bad one", reports({}, { subject: "l", endsInMs: 1e300 })],
  ["501 reports", reports(...Array.from({ length: 501 }, (_, i) => ({ subject: `k${i}` })))],
];

export const possibleReports: [string, Question][] = [
  ["no report", reports()],
  ["500 reports", reports(...Array.from({ length: 500 }, (_, i) => ({ subject: `k${i}` })))],
  ["a report of no API", reports({ apiId: undefined })],
  ["the longest window", reports({ endsInMs: monthMs, durationMs: monthMs, count: 2 ** 31 - 1 })],
  ["the shortest window", reports({ endsInMs: 1, durationMs: 1000, count: 0, gen: 2 ** 53 - 1 })],
  ["a window that ends after its duration", reports({ endsInMs: 60_000, durationMs: 1000 })],
  ["the longest subject", reports({ subject: longest })],
];
