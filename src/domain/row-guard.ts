/**
 * Keeps threads apart that count in the same rows. A row belongs to one key after the other, each time under another
 * claim number: somebody who remembers a key's row and its claim notices when the row has become another key's.
 */
export interface RowGuard {
  /** The number under which the row belongs to its key now. */
  claimOf(slot: number): number;
  /** Takes the row for a moment in which nobody else touches it. False when it is another key's by now. */
  hold(slot: number, claim: number): boolean;
  letGo(slot: number, claim: number): void;
  /** Lets go of a held row for good: from now on it belongs to nobody under this claim. */
  giveUp(slot: number, claim: number): void;
}
