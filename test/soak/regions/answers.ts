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

/** 503s of one key on one edge that are farther apart belong to two outages. */
const apartMs = 1000;

/**
 * For how long a key could not be verified on an edge, of the key and edge for which that is longest. An outage lasts from
 * its first 503 (when it was asked for) to its last one (when it was answered); verdicts in between do not interrupt it.
 */
export function longestOutageMs(answers: readonly Answer[]): number {
  const outages = new Map<string, { firstMs: number; lastMs: number; beforeMs: number }>();
  const failed = answers.filter(({ outcome }) => outcome === "unavailable").sort((a, b) => a.sentMs - b.sentMs);
  for (const { edge, key, sentMs, answeredMs } of failed) {
    const outage = outages.get(`${edge} ${key}`) ?? { firstMs: sentMs, lastMs: answeredMs, beforeMs: 0 };
    if (sentMs - outage.lastMs > apartMs) {
      outage.beforeMs += outage.lastMs - outage.firstMs;
      outage.firstMs = sentMs;
    }
    outage.lastMs = Math.max(outage.lastMs, answeredMs);
    outages.set(`${edge} ${key}`, outage);
  }
  return Math.max(0, ...[...outages.values()].map(({ firstMs, lastMs, beforeMs }) => beforeMs + lastMs - firstMs));
}

/** The longest that a caller waited for a 503. */
export function slowest503Ms(answers: readonly Answer[]): number {
  const failed = answers.filter(({ outcome }) => outcome === "unavailable");
  return Math.max(0, ...failed.map(({ sentMs, answeredMs }) => answeredMs - sentMs));
}
