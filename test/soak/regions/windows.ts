import type { Answer } from "./answers.ts";

export interface Rule {
  readonly limit: number;
  readonly durationMs: number;
}

/** What all edges together let pass in one window of a strict limit. */
export interface Window {
  readonly key: string;
  readonly rule: Rule;
  /** When it ends, by the ledger's clock, which is this machine's. */
  readonly resetMs: number;
  admitted: number;
  limited: number;
}

/** A window is known by its end: the ledger sets it, and edges tell it as it is. */
export function windowsOf(answers: readonly Answer[], rules: ReadonlyMap<string, Rule>): Window[] {
  const windows = new Map<string, Window>();
  for (const { key, outcome, resetMs } of answers) {
    const rule = rules.get(key);
    if (rule === undefined || resetMs === undefined || (outcome !== "admitted" && outcome !== "limited")) continue;
    const id = `${key} ${resetMs}`;
    const window = windows.get(id) ?? { key, rule, resetMs, admitted: 0, limited: 0 };
    window[outcome]++;
    windows.set(id, window);
  }
  return [...windows.values()].sort((a, b) => a.resetMs - b.resetMs);
}

/** Verifications that passed beyond a limit. Must be 0, whatever happens. */
export function over(windows: readonly Window[]): number {
  return windows.reduce((sum, { admitted, rule }) => sum + Math.max(0, admitted - rule.limit), 0);
}

/** Windows that end less than their duration after the one before: two limits would pass in one duration. */
export function tooClose(windows: readonly Window[]): string[] {
  const last = new Map<string, number>();
  const problems: string[] = [];
  for (const { key, rule, resetMs } of windows) {
    const apartMs = resetMs - (last.get(key) ?? Number.NEGATIVE_INFINITY);
    if (apartMs < rule.durationMs) problems.push(`${key}: windows of ${rule.durationMs} ms end ${apartMs} ms apart`);
    last.set(key, resetMs);
  }
  return problems;
}

/** Windows that opened and ended within a time span of the ledger's clock. */
export function within(windows: readonly Window[], fromMs: number, untilMs: number): Window[] {
  return windows.filter(({ rule, resetMs }) => resetMs - rule.durationMs >= fromMs && resetMs <= untilMs);
}

export function isFull({ admitted, rule }: Window): boolean {
  return admitted === rule.limit;
}

/** Permits that no caller got although callers were refused: they were granted to an edge that did not get or use them. */
export function unusedPermits(windows: readonly Window[]): number {
  const refusing = windows.filter(({ limited }) => limited > 0);
  return refusing.reduce((sum, { admitted, rule }) => sum + Math.max(0, rule.limit - admitted), 0);
}
