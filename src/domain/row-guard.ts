/**
 * Lets one thread at a time count in a row. A row is reused for other keys, each time with a new claim number. A thread
 * that remembers a key's row and claim thus notices when the row belongs to another key.
 */
export interface RowGuard {
  /** The number under which the row belongs to its key now. */
  claimOf(slot: number): number;
  /** Locks the row for a moment. False when it belongs to another key by now. */
  hold(slot: number, claim: number): boolean;
  letGo(slot: number, claim: number): void;
  /** Unlocks the row and ends this claim: the row no longer belongs to a key. */
  giveUp(slot: number, claim: number): void;
}
