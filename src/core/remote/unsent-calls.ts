import type { Question } from "../wire.ts";

/** The calls that wait for the end of the turn, or for room in the stream. */
export interface Unsent {
  readonly calls: UnsentCall[];
  readonly seenTimeMs: number;
  readonly seenAgeMs: number;
}

export interface UnsentCall {
  readonly id: number;
  readonly question: Question;
  readonly isWanted: (() => boolean) | undefined;
}
