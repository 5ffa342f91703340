/**
 * Lets one thread at a time count in a row. A row is reused for other subjects, each time with a new claim number. A thread
 * that remembers a subject's row and claim thus notices when the row belongs to another subject.
 */
export interface RowGuard {
  /** The number under which the row belongs to its subject now. */
  claimOf(slot: number): number;
  /** Locks the row for a moment. False when it belongs to another subject by now. */
  hold(slot: number, claim: number): boolean;
  letGo(slot: number, claim: number): void;
  /** Unlocks the row and ends this claim: the row no longer belongs to a subject. */
  giveUp(slot: number, claim: number): void;
}
