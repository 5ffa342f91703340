import type { Loads } from "../loads/load-programs.ts";
import type { Turns } from "../rounds.ts";

/** A figure, and what it should be; without a bound it is only stated. */
export interface Goal {
  readonly what: string;
  readonly unit: "×" | "MB" | "ms" | "s" | "µs" | "bytes" | "";
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** A reason, where the machine cannot tell. */
export type Figure = number | string;

export interface Findings<Name extends string> {
  /** Tables and remarks, in Markdown. */
  readonly text: readonly string[];
  readonly figures: Readonly<Record<Name, Figure>>;
}

/** One part of the benchmark: what it compares is measured by it, in turns. */
export interface Section<Name extends string = string> {
  readonly title: string;
  /** How it is measured, for readers of the tables. */
  readonly how: string;
  readonly goals: Readonly<Record<Name, Goal>>;
  measure(bench: Bench): Promise<Findings<Name>>;
}

/** What a section works with. A section registers how to end each thing that it starts. */
export interface Bench {
  /** Empty, and removed afterwards. */
  readonly folder: string;
  readonly loads: Loads;
  readonly turns: Required<Turns>;
  /** How many keys the growth, cold and lists sections fill their stores with. */
  readonly growthKeys: number;
  /** How long the cold section goes on when all keys are in memory. */
  readonly coldMinutes: number;
  /** Whether Latchkey leaves CPU profiles behind. */
  readonly profile: boolean;
  /** The folder of an earlier build. */
  readonly before: string | undefined;
  /** Names of figures: a section that can leave out the others does. Absent: all. */
  readonly only: readonly string[] | undefined;
  atEnd(step: () => unknown): void;
}
