import { type Answer, oddOf } from "./answers.ts";
import type { RunningLoad } from "./caller-process.ts";
import { monotonicMs } from "./clock.ts";
import { edges, type Lab } from "./lab.ts";
import type { KeyBody } from "./make-keys.ts";
import type { Report } from "./report.ts";
import { over, type Rule, tooClose, type Window, windowsOf, within } from "./windows.ts";

/** A key with a strict limit, and how much of it is asked for. */
export interface StrictKey extends Rule {
  readonly name: string;
  readonly perSecondOnEachEdge: number;
}

/** The three limits of the issue, each asked for about one and a half times or more often. */
export const threeLimits: readonly StrictKey[] = [
  { name: "1000 per 10 s", limit: 1000, durationMs: 10_000, perSecondOnEachEdge: 50 },
  { name: "10 per 2 s", limit: 10, durationMs: 2000, perSecondOnEachEdge: 5 },
  { name: "1 per 1 s", limit: 1, durationMs: 1000, perSecondOnEachEdge: 3 },
];

/** Keys enough that each coordinator is preferred by some of them. */
export const manyKeys: readonly StrictKey[] = Array.from({ length: 12 }, (_, i) => ({
  name: `20 per 1 s, number ${i + 1}`,
  limit: 20,
  durationMs: 1000,
  perSecondOnEachEdge: 8,
}));

export function bodiesOf(keys: readonly StrictKey[]): Map<string, KeyBody> {
  return new Map(
    keys.map(({ name, limit, durationMs }) => [name, { ratelimit: { async: false, limit, duration: durationMs } }]),
  );
}

/** Verifies strict keys on every edge, and reads the answers as windows. */
export class StrictLoad {
  readonly #lab: Lab;
  readonly #keys: readonly StrictKey[];
  readonly #rules: ReadonlyMap<string, Rule>;
  #running: RunningLoad[] = [];

  constructor(lab: Lab, keys: readonly StrictKey[]) {
    this.#lab = lab;
    this.#keys = keys;
    this.#rules = new Map(keys.map((key) => [key.name, key]));
  }

  start(): void {
    this.#running = edges.flatMap((edge) =>
      this.#keys.map(({ name, perSecondOnEachEdge }) => this.#lab.load(edge, [name], perSecondOnEachEdge)),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((load) => load.stop()));
    this.#running = [];
  }

  /** Windows that opened and ended between two moments of the monotonic clock. */
  windowsWithin(fromMs: number, untilMs: number): Window[] {
    const toWallMs = Date.now() - monotonicMs();
    return within(this.#windows(), fromMs + toWallMs, untilMs + toWallMs);
  }

  /** What must hold in every run, whatever was broken. */
  checkNeverOver(report: Report): void {
    const windows = this.#windows();
    report.atMost(`over the limit, in ${windows.length} windows`, over(windows), 0);
    report.none("windows too close together", tooClose(windows));
    report.none("answers of another kind", oddOf(this.#lab.answers));
  }

  #windows(): Window[] {
    return windowsOf(this.#lab.answers, this.#rules);
  }
}

/** Calls that were sent between two moments. */
export function sentWithin(answers: readonly Answer[], fromMs: number, untilMs: number): Answer[] {
  return answers.filter(({ sentMs }) => sentMs >= fromMs && sentMs < untilMs);
}
