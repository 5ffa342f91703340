/** At most so many pieces wait separately: each costs about a hundred bytes of memory, however small it is. */
const piecesMax = 64;
const nothing: Buffer = Buffer.alloc(0);

/** Bytes in the order in which they came. */
export class ByteQueue {
  #pieces: Buffer[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    if (this.#pieces.length === piecesMax) this.#pieces = [Buffer.concat(this.#pieces)];
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  /** Removes and returns all bytes, in one piece. */
  take(): Buffer {
    const { length } = this.#pieces;
    const bytes = length > 1 ? Buffer.concat(this.#pieces) : (this.#pieces[0] ?? nothing);
    this.clear();
    return bytes;
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
  }
}
