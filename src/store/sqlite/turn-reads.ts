import type { DatabaseSync, StatementSync } from "node:sqlite";

/**
 * Look-ups of one turn of the event loop share a read transaction: to begin one costs as much as a quarter of a look-up.
 * They see the file as it was when the transaction began. So it ends before an answer of the writer is passed on: what
 * was acknowledged is seen by every look-up that comes after it. A transaction that could not be ended, because the file
 * is damaged, is never read in again.
 */
export class TurnReads {
  readonly #reader: DatabaseSync;
  readonly #onFailure: (cause: unknown) => void;
  #begin: StatementSync | undefined;
  #commit: StatementSync | undefined;
  /** Look-ups of this turn, as far as it matters. */
  #count = 0;
  #isOver = false;
  readonly #endTurn = () => {
    this.#count = 0;
    this.end();
  };

  constructor(reader: DatabaseSync, onFailure: (cause: unknown) => void) {
    this.#reader = reader;
    this.#onFailure = onFailure;
  }

  /** To be called before each look-up. The first of a turn has no transaction, because it may be the only one. Throws. */
  beforeLookup(): void {
    if (this.#isOver) this.endNow();
    if (this.#count === 0) setImmediate(this.#endTurn);
    if (this.#count < 2) this.#count++;
    if (this.#count < 2 || this.#reader.isTransaction) return;
    this.#begin ??= this.#reader.prepare("BEGIN");
    this.#commit ??= this.#reader.prepare("COMMIT");
    this.#begin.run();
  }

  /** Later reads see the file as it is then. */
  end(): void {
    try {
      this.endNow();
    } catch (cause) {
      this.#onFailure(cause);
    }
  }

  /** As `end`, but throws if the transaction could not be ended. */
  endNow(): void {
    if (!this.#reader.isOpen || !this.#reader.isTransaction) return;
    this.#isOver = true;
    this.#commit?.run();
    this.#isOver = false;
  }
}
