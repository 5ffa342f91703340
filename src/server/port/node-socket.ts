import { Duplex } from "node:stream";

/** The connection that stands behind. */
interface Wire {
  /** Answers whether more may follow at once. */
  write(chunk: Buffer | string, encoding: BufferEncoding): boolean;
  end(): void;
  destroy(): void;
  /** More bytes may be fed. */
  hungry(): void;
}

/**
 * What Node's HTTP server takes for the socket. It gets the bytes it is fed and no others, so that a connection can be read
 * by us before and after.
 */
export class NodeSocket extends Duplex {
  readonly #wire: Wire;
  #continueWriting: (() => void) | undefined;

  constructor(wire: Wire) {
    super({ autoDestroy: false });
    this.#wire = wire;
  }

  /** The wire takes more. */
  drained(): void {
    const continueWriting = this.#continueWriting;
    this.#continueWriting = undefined;
    continueWriting?.();
  }

  override _read(): void {
    this.#wire.hungry();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    if (this.#wire.write(chunk, encoding)) done();
    else this.#continueWriting = done;
  }

  override _final(done: () => void): void {
    this.#wire.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#wire.destroy();
    done(error);
  }
}
