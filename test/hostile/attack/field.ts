import type { SeededRandom } from "../../domain/seeded-random.ts";

/** Keys that attacks verify; the honest client has others. */
export interface AttackedKeys {
  /** Answered from memory. */
  readonly plain: string;
  /** Has uses to spend, so that its answers wait for a commit. */
  readonly counted: string;
  /** Has 16 KB of metadata, which every answer repeats. */
  readonly big: string;
}

/** What an attack is given. */
export interface Field {
  readonly port: number;
  /** Absent where nothing internal is served. */
  readonly internalPort?: number;
  readonly keys: AttackedKeys;
  readonly random: SeededRandom;
  /** Attacks that can be repeated go on until then, by `performance.now()`. */
  readonly untilMs: number;
}

/**
 * Resolves to what was wrong from the attacker's own view: whole requests without an answer, answers that cannot be,
 * connections that stay open although they should not. Everything else is watched from outside.
 */
export type Attack = (field: Field) => Promise<readonly string[]>;

/** What the attacker's process is sent, and answers with. */
export interface AttackOrder {
  readonly attack: string;
  readonly seed: number;
  readonly port: number;
  readonly internalPort?: number;
  readonly keys: AttackedKeys;
  readonly forMs: number;
}

export interface AttackReport {
  readonly problems: readonly string[];
}

export function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Does one after the other until the time is up, several at once; at least once each. */
export async function repeatUntil(
  { untilMs }: Field,
  together: number,
  once: () => Promise<readonly string[]>,
): Promise<string[]> {
  const problems: string[] = [];
  const repeat = async () => {
    do {
      problems.push(...(await once()));
    } while (performance.now() < untilMs && problems.length === 0);
  };
  await Promise.all(Array.from({ length: together }, repeat));
  return problems;
}
