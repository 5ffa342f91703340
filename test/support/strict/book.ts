import type { HolderKind, Placed } from "../limited.ts";

/** A strict limit, as a key was given it, or what else it is for. */
export interface StrictRule {
  readonly limit: number;
  readonly durationMs: number;
  /** By default a key's. Only servers have others. */
  readonly of?: HolderKind;
}

/** What one verification of a key with a strict limit came to. */
export type StrictAnswer =
  | (Placed & { readonly outcome: "admitted" | "limited" })
  /** 503: it could not be decided. */
  | { readonly outcome: "unavailable" }
  /** The call was cut, or its replica killed: the outcome is unknown. */
  | { readonly outcome: "unanswered" }
  /** What a key with a strict limit must never be told. */
  | { readonly outcome: "odd"; readonly what: string };

/** One window of one key, as its callers saw it. */
export interface SeenWindow {
  readonly key: number;
  readonly rule: StrictRule;
  readonly resetMs: number;
  /** The sum of what the admitted calls cost. */
  admitted: number;
  /** Refused calls of cost 1: a larger one may be refused by a window that is not full. */
  limited: number;
  /** When the first of those refusals was known, and when the last of those calls began. */
  firstLimitedMs: number;
  lastLimitedMs: number;
  /** When its last answer came. */
  lastMs: number;
  /** Replicas that admitted a request and have refused none since: they may hold permits that no request asks for. */
  readonly holders: Map<number, number>;
}

/** A call under way. */
export interface OpenCall {
  readonly key: number;
  readonly replica: number;
  readonly cost: number;
  readonly begunMs: number;
  /** The least `remaining` that this replica had told in the window that was then the latest. */
  readonly seen: { readonly resetMs: number; readonly least: number } | undefined;
}

/**
 * A replica that refuses holds nothing. When every replica that had permits has refused since, permits can only be under
 * way between them. Refusals this far apart show that those had the time to arrive.
 */
const settledMs = 400;

/** Clocks are read a little apart. */
const clockSlackMs = 25;

/** Records every verification, by key and window, and describes what is wrong. */
export class StrictBook {
  readonly rules: readonly StrictRule[];
  readonly counts = { admitted: 0, limited: 0, unavailable: 0, unanswered: 0 };
  /** When the latest call began that each replica let pass. */
  readonly lastPassedMs = new Map<number, number>();
  /** How long callers waited for each 503. */
  readonly unavailableAfterMs: number[] = [];
  /** When each of them came. */
  readonly unavailableAtMs: number[] = [];
  readonly #nowMs: () => number;
  readonly #stoodStillMs: (fromMs: number, toMs: number) => number;
  readonly #windows = new Map<string, SeenWindow>();
  readonly #least = new Map<string, { resetMs: number; least: number }>();
  readonly #oddities: string[] = [];

  /** `stoodStillMs`: how much of a time the machine had no time for this process. */
  constructor(
    rules: readonly StrictRule[],
    nowMs = () => performance.now(),
    stoodStillMs: (fromMs: number, toMs: number) => number = () => 0,
  ) {
    this.rules = rules;
    this.#nowMs = nowMs;
    this.#stoodStillMs = stoodStillMs;
  }

  begin(key: number, replica: number, cost = 1): OpenCall {
    const seen = this.#least.get(`${key} ${replica}`);
    return { key, replica, cost, begunMs: this.#nowMs(), seen: seen && { ...seen } };
  }

  end(call: OpenCall, answer: StrictAnswer): void {
    if (answer.outcome === "odd") {
      this.#oddities.push(answer.what);
      return;
    }
    this.counts[answer.outcome]++;
    if (answer.outcome === "unavailable") {
      this.unavailableAfterMs.push(this.#nowMs() - call.begunMs);
      this.unavailableAtMs.push(this.#nowMs());
    }
    if (answer.outcome !== "admitted" && answer.outcome !== "limited") return;
    const { key, cost } = call;
    const isAboveLimit = cost > (this.rules[key] as StrictRule).limit;
    // Neither takes part in a window, so it may tell of none.
    if (cost > 0 && !isAboveLimit) this.#place(call, answer.outcome, answer);
    else if ((answer.outcome === "limited") !== isAboveLimit)
      this.#oddities.push(`key ${key}: a cost of ${cost} was ${answer.outcome}`);
  }

  /** The replica was killed: its permits are lost, and its successor does not know what it told callers. */
  killed(replica: number): void {
    for (const id of this.#least.keys()) if (id.endsWith(` ${replica}`)) this.#least.delete(id);
    for (const { holders } of this.#windows.values()) holders.delete(replica);
  }

  get windows(): SeenWindow[] {
    return [...this.#windows.values()];
  }

  /** What must never happen, in any fault: more than the limit, windows too close together, wrong or rising numbers. */
  problems(): string[] {
    return [...this.#oddities, ...this.windows.flatMap(problemsWithWindow), ...this.#problemsWithTime()];
  }

  /** What was not used of the windows that were open at that moment, by the ledger's clock, and had refused a request. */
  missingAt(wallMs: number): number {
    const open = this.windows.filter(({ resetMs, rule, limited }) => {
      return resetMs > wallMs && resetMs - rule.durationMs <= wallMs && limited > 0;
    });
    return sum(open.map(({ rule, admitted }) => rule.limit - admitted));
  }

  /** Windows that refused callers for long and did not use up their limit. Without a fault there must be none. */
  short(): SeenWindow[] {
    return this.windows.filter((window) => window.admitted < window.rule.limit && this.#hadTimeToFill(window));
  }

  /**
   * A replica refuses for the rest of a window when the ledger says that all of it is spent. It also refuses, and counts
   * that it did, when another replica holds the last permits for too long: only those windows may stay open a little.
   */
  problemsWithFilling(unsettledRefusals: number): string[] {
    const problems = this.short().map(({ key, rule, admitted, limited }) => {
      return `key ${key}: only ${admitted} of ${rule.limit} passed in a window that refused ${limited}`;
    });
    const { refusedEarly } = this.figures;
    if (refusedEarly > unsettledRefusals)
      problems.push(
        `${refusedEarly} windows refused a request without being full, for ${unsettledRefusals} known reasons`,
      );
    return problems;
  }

  get figures() {
    const { windows } = this;
    const over = windows.map(({ admitted, rule }) => Math.max(0, admitted - rule.limit));
    const early = windows.filter(({ admitted, limited, rule }) => limited > 0 && admitted < rule.limit);
    return {
      windows: windows.length,
      refusingForLong: windows.filter((window) => this.#hadTimeToFill(window)).length,
      filled: windows.filter(({ admitted, rule }) => admitted === rule.limit).length,
      over: sum(over),
      short: sum(this.short().map(({ admitted, rule }) => rule.limit - admitted)),
      /** Windows that refused a request and yet did not fill: permits were held elsewhere to the end. */
      refusedEarly: early.length,
      heldToTheEnd: sum(early.map(({ admitted, rule }) => rule.limit - admitted)),
      ...this.counts,
    };
  }

  #hadTimeToFill({ firstLimitedMs, lastLimitedMs, holders }: SeenWindow): boolean {
    const refusingMs = lastLimitedMs - firstLimitedMs;
    if (holders.size > 0 || refusingMs < settledMs) return false;
    return refusingMs - this.#stoodStillMs(firstLimitedMs, lastLimitedMs) >= settledMs;
  }

  #place({ key, replica, cost, begunMs, seen }: OpenCall, outcome: "admitted" | "limited", placed: Placed): void {
    const nowMs = this.#nowMs();
    const { limit, remaining, resetMs } = placed;
    const rule = this.rules[key] as StrictRule;
    const id = `${key} ${resetMs}`;
    let window = this.#windows.get(id);
    if (window === undefined) {
      const limits = { firstLimitedMs: Number.POSITIVE_INFINITY, lastLimitedMs: 0 };
      window = { key, rule, resetMs, admitted: 0, limited: 0, ...limits, lastMs: nowMs, holders: new Map() };
      this.#windows.set(id, window);
    }
    window.lastMs = nowMs;
    if (outcome === "admitted") {
      window.admitted += cost;
      window.holders.set(replica, nowMs);
      this.lastPassedMs.set(replica, Math.max(begunMs, this.lastPassedMs.get(replica) ?? 0));
    }
    if (outcome === "limited" && remaining >= cost)
      this.#oddities.push(`key ${key}: ${cost} refused with ${remaining} remaining`);
    if (outcome === "limited" && cost === 1) {
      window.limited++;
      if ((window.holders.get(replica) ?? 0) < begunMs) window.holders.delete(replica);
      window.firstLimitedMs = Math.min(window.firstLimitedMs, nowMs);
      window.lastLimitedMs = Math.max(window.lastLimitedMs, begunMs);
    }
    if (limit !== rule.limit) this.#oddities.push(`key ${key}: its limit of ${rule.limit} is told as ${limit}`);
    if (!(remaining >= 0 && remaining <= limit)) this.#oddities.push(`key ${key}: ${remaining} of ${limit} remaining`);
    this.#oddities.push(...this.#problemsWithMoment(key, begunMs, resetMs));
    // Only against what was known when the call began: answers of calls that overlap may come in any order. Of several
    // limits, one gives back what it gave when another could not be asked.
    const isAlone = rule.of !== "key with several" && rule.of !== "owner";
    if (isAlone && seen?.resetMs === resetMs && remaining > seen.least)
      this.#oddities.push(`key ${key}: remaining rose from ${seen.least} to ${remaining} on replica ${replica}`);
    this.#notice(`${key} ${replica}`, resetMs, remaining);
  }

  /** The ledger's clock is this machine's: the window was open at some moment between question and answer. */
  #problemsWithMoment(key: number, begunMs: number, resetMs: number): string[] {
    const { durationMs } = this.rules[key] as StrictRule;
    const [nowMs, wallMs] = [this.#nowMs(), Date.now()];
    const earlyMs = resetMs - durationMs - wallMs;
    const lateMs = wallMs - (nowMs - begunMs) - resetMs;
    if (earlyMs > clockSlackMs) return [`key ${key}: answered ${earlyMs} ms before its window opened`];
    if (lateMs > clockSlackMs) return [`key ${key}: asked ${Math.round(lateMs)} ms after its window had ended`];
    return [];
  }

  #notice(id: string, resetMs: number, remaining: number): void {
    const seen = this.#least.get(id);
    if (seen === undefined || resetMs > seen.resetMs) this.#least.set(id, { resetMs, least: remaining });
    else if (resetMs === seen.resetMs) seen.least = Math.min(seen.least, remaining);
  }

  #problemsWithTime(): string[] {
    const problems: string[] = [];
    this.rules.forEach(({ durationMs }, key) => {
      const ends = this.windows.filter((window) => window.key === key).map(({ resetMs }) => resetMs);
      ends.sort((a, b) => a - b);
      for (let i = 1; i < ends.length; i++) {
        const apartMs = (ends[i] as number) - (ends[i - 1] as number);
        if (apartMs < durationMs) problems.push(`key ${key}: windows of ${durationMs} ms end ${apartMs} ms apart`);
      }
    });
    return problems;
  }
}

function problemsWithWindow({ key, rule, admitted }: SeenWindow): string[] {
  return admitted > rule.limit ? [`key ${key}: ${admitted} passed in one window of ${rule.limit}`] : [];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
