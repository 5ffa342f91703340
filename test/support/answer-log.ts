/** What one verification of a rate-limited key came to, as its caller saw it. */
export interface LoggedAnswer {
  /** Which replica was asked, by its place in the fleet. */
  readonly replica: number;
  readonly cost: number;
  /** Unix times by the caller's own clock, which does not step: the replica decided somewhere between the two. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** 0: there was none, the connection failed. */
  readonly status: number;
  readonly code: string;
  /** When the window ends, by the replica's clock. */
  readonly resetMs: number;
}

/** What all of them cost. */
export function costOf(log: readonly LoggedAnswer[]): number {
  return log.reduce((sum, { cost }) => sum + cost, 0);
}

export function admittedOf(log: readonly LoggedAnswer[]): LoggedAnswer[] {
  return log.filter(({ code }) => code === "VALID");
}

/** Everything that no caller should see, each sort once, with its number: all but verdicts. */
export function oddAnswers(log: readonly LoggedAnswer[]): string[] {
  const counts = new Map<string, number>();
  for (const { status, code } of log) {
    if (status === 200 && (code === "VALID" || code === "RATE_LIMITED")) continue;
    counts.set(`${status} ${code}`, (counts.get(`${status} ${code}`) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `${count} × ${what}`);
}

/** Sorted latencies in milliseconds. */
export function latenciesOf(log: readonly LoggedAnswer[]): number[] {
  return log.map(({ sentMs, answeredMs }) => answeredMs - sentMs).sort((a, b) => a - b);
}

/** Between the clocks of a replica and of its caller: a replica that follows its wall clock allows itself as much. */
const skewMs = 60;

/** Refusals that tell of a window that was over already, or longer than there are any. */
export function endsOutOfRange(log: readonly LoggedAnswer[], { durationMs }: { durationMs: number }): LoggedAnswer[] {
  return log.filter(({ code, sentMs, answeredMs, resetMs }) => {
    if (code !== "RATE_LIMITED") return false;
    return resetMs < sentMs - skewMs || resetMs > answeredMs + durationMs + skewMs;
  });
}
