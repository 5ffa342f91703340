/** What a call came to. Anything else is a text that says what was odd. */
export type Outcome =
  | "admitted"
  | "limited"
  | "unavailable"
  /** Sent, and the connection broke or no answer came in time: it may have been executed. */
  | "unanswered"
  /** Nothing listened: it was never sent. */
  | "refused"
  | `odd: ${string}`;

/** One verification as its caller saw it. Times are of the machine's monotonic clock. */
export interface Answer {
  readonly edge: string;
  /** The key's name in the lab. */
  readonly key: string;
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly outcome: Outcome;
  /** When the strict limit's window ends, by the ledger's clock. */
  readonly resetMs?: number;
  /** Of a counted key: uses left. */
  readonly remaining?: number;
}

export function countOf(answers: readonly Answer[], outcome: Outcome): number {
  return answers.filter((answer) => answer.outcome === outcome).length;
}

/** Answers that no caller should see in any fault: each sort once, with its number. */
export function oddOf(answers: readonly Answer[]): string[] {
  const counts = new Map<string, number>();
  for (const { outcome } of answers) {
    if (outcome.startsWith("odd")) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `${count} × ${what}`);
}

/**
 * For how long a key could not be verified on an edge: from the first 503 (when it was asked for) to the last one (when
 * it was answered), of the key and edge for which that is longest. Answers in between do not interrupt it.
 */
export function longestOutageMs(answers: readonly Answer[]): number {
  const spans = new Map<string, { firstMs: number; lastMs: number }>();
  for (const { edge, key, outcome, sentMs, answeredMs } of answers) {
    if (outcome !== "unavailable") continue;
    const span = spans.get(`${edge} ${key}`) ?? { firstMs: sentMs, lastMs: answeredMs };
    span.firstMs = Math.min(span.firstMs, sentMs);
    span.lastMs = Math.max(span.lastMs, answeredMs);
    spans.set(`${edge} ${key}`, span);
  }
  return Math.max(0, ...[...spans.values()].map(({ firstMs, lastMs }) => lastMs - firstMs));
}

/** The longest that a caller waited for a 503. */
export function slowest503Ms(answers: readonly Answer[]): number {
  const failed = answers.filter(({ outcome }) => outcome === "unavailable");
  return Math.max(0, ...failed.map(({ sentMs, answeredMs }) => answeredMs - sentMs));
}
