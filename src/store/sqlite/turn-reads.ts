import type { DatabaseSync, StatementSync } from "node:sqlite";

/**
 * Look-ups of one turn of the event loop share a read transaction: to begin one costs as much as a quarter of a look-up.
 * They see the file as it was when the transaction began. So it ends before an answer of the writer is passed on: what
 * was acknowledged is seen by every look-up that comes after it.
 */
export class TurnReads {
  readonly #reader: DatabaseSync;
  #begin: StatementSync | undefined;
  #commit: StatementSync | undefined;
  /** Look-ups of this turn, as far as it matters. */
  #count = 0;
  readonly #endTurn = () => {
    this.end();
    this.#count = 0;
  };

  constructor(reader: DatabaseSync) {
    this.#reader = reader;
  }

  /** To be called before each look-up. The first of a turn has no transaction, because it may be the only one. */
  beforeLookup(): void {
    if (this.#count === 0) setImmediate(this.#endTurn);
    if (this.#count < 2) this.#count++;
    if (this.#count < 2 || this.#reader.isTransaction) return;
    this.#begin ??= this.#reader.prepare("BEGIN");
    this.#begin.run();
  }

  /** Later reads see the file as it is then. */
  end(): void {
    if (!this.#reader.isOpen || !this.#reader.isTransaction) return;
    this.#commit ??= this.#reader.prepare("COMMIT");
    this.#commit.run();
  }
}
