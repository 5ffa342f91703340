import { setTimeout as delay } from "node:timers/promises";
import type { SeenWindow } from "./strict-book.ts";
import type { StrictCluster } from "./strict-cluster.ts";
import type { StrictLoad } from "./strict-load.ts";

/** Something that breaks, and how it is mended. */
export interface Fault {
  readonly name: string;
  begin(): Promise<unknown> | unknown;
  /** How long it stays broken. */
  readonly ms: number;
  end(): Promise<unknown> | unknown;
  /** While it is broken nobody can get permits: those that are held run out with their windows. */
  readonly cutsOffLedger?: boolean;
}

export interface TrialReport {
  readonly fault: string;
  readonly problems: readonly string[];
  readonly figures: Record<string, number>;
}

/** The deadline of the documentation. */
const answerMs = 500;
const probeMs = 50;
const recoveryMs = 20_000;

/** Breaks and mends things under a load, and says what was wrong with its answers meanwhile. */
export class StrictTrial {
  readonly #load: StrictLoad;
  readonly #cluster: Pick<StrictCluster, "size" | "probe">;
  /** The longest window: what is held cannot outlive it. */
  readonly #windowMs: number;
  /** When something was broken, by the wall's clock: windows of that time may stay short. */
  readonly #disturbed: { fromMs: number; toMs: number }[] = [];

  constructor(load: StrictLoad, cluster: Pick<StrictCluster, "size" | "probe">) {
    this.#load = load;
    this.#cluster = cluster;
    this.#windowMs = Math.max(...load.book.rules.map(({ durationMs }) => durationMs));
  }

  /** Only while the load runs. */
  async run(fault: Fault): Promise<TrialReport> {
    const { book } = this.#load;
    const before = { ...book.counts, waited: book.unavailableAfterMs.length };
    const fromMs = Date.now();
    await fault.begin();
    const problems: string[] = [];
    if (fault.cutsOffLedger) problems.push(...(await this.#waitWithoutLedger(fault.ms, before.waited)));
    else await delay(fault.ms);
    await fault.end();
    const mendedMs = performance.now();
    problems.push(...(await this.#recover(mendedMs)));
    const recoveredMs = performance.now() - mendedMs;
    // Windows that were open meanwhile may have lost permits: those after them may not.
    this.#disturbed.push({ fromMs: fromMs - this.#windowMs, toMs: Date.now() });
    const short = this.#shortBetween(fromMs - this.#windowMs, Date.now());
    const count = (name: keyof typeof book.counts) => book.counts[name] - before[name];
    const figures = {
      admitted: count("admitted"),
      limited: count("limited"),
      unavailable: count("unavailable"),
      unanswered: count("unanswered"),
      short: short.reduce((sum, { rule, admitted }) => sum + rule.limit - admitted, 0),
      recoveredMs: Math.round(recoveredMs),
    };
    return { fault: fault.name, problems: [...problems, ...book.problems()], figures };
  }

  /** Windows that stayed short although nothing was broken while they were open. */
  shortUndisturbed(): SeenWindow[] {
    return this.#load.book.short().filter(({ resetMs, rule }) => {
      const openedMs = resetMs - rule.durationMs;
      return !this.#disturbed.some(({ fromMs, toMs }) => openedMs >= fromMs && openedMs <= toMs);
    });
  }

  /** After a window's length without the ledger nothing passes, and everybody is told in time that it is not known. */
  async #waitWithoutLedger(ms: number, waitedBefore: number): Promise<string[]> {
    const { book } = this.#load;
    const brokenMs = performance.now();
    const probes: number[] = [];
    while (performance.now() < brokenMs + ms) {
      const probedMs = performance.now();
      await this.#cluster.probe();
      probes.push(performance.now() - probedMs);
      await delay(probeMs);
    }
    const lastMs = Math.max(0, ...book.lastPassedMs.values()) - brokenMs;
    const waitMs = most(book.unavailableAfterMs.slice(waitedBefore));
    const problems: string[] = [];
    if (lastMs > this.#windowMs) problems.push(`somebody passed ${Math.round(lastMs)} ms after the ledger was gone`);
    if (waitMs === 0) problems.push("nobody was told that it cannot be decided");
    // A busy machine is late with everything: the caller, the timer and the answer.
    const allowedMs = answerMs + 100 + 4 * most(probes);
    if (waitMs > allowedMs) problems.push(`it took ${Math.round(waitMs)} ms of ${Math.round(allowedMs)} to answer 503`);
    return problems;
  }

  async #recover(sinceMs: number): Promise<string[]> {
    const { lastPassedMs } = this.#load.book;
    const serves = (replica: number) => (lastPassedMs.get(replica) ?? 0) > sinceMs;
    const untilMs = sinceMs + recoveryMs;
    const all = Array.from({ length: this.#cluster.size }, (_, replica) => replica);
    while (performance.now() < untilMs) {
      if (all.every(serves)) return [];
      await delay(20);
    }
    return all.filter((replica) => !serves(replica)).map((replica) => `replica ${replica} did not recover`);
  }

  #shortBetween(fromMs: number, toMs: number): SeenWindow[] {
    return this.#load.book.short().filter(({ resetMs, rule }) => {
      const openedMs = resetMs - rule.durationMs;
      return openedMs >= fromMs && openedMs <= toMs;
    });
  }
}

/** All but a twentieth are at most this. */
function most(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? 0;
}
