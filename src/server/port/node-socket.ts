import { Duplex } from "node:stream";

/** The real connection behind a `NodeSocket`. */
interface Wire {
  /** Returns whether more may be written immediately. */
  write(chunk: Buffer | string, encoding: BufferEncoding): boolean;
  end(): void;
  destroy(): void;
  /** Node has room for more bytes. */
  hungry(): void;
}

/**
 * Node's HTTP server sees this as the client's socket. It gets only the bytes that we push into it, so we can read the
 * same connection before and after.
 */
export class NodeSocket extends Duplex {
  readonly #wire: Wire;
  #continueWriting: (() => void) | undefined;

  constructor(wire: Wire) {
    super({ autoDestroy: false });
    this.#wire = wire;
  }

  /** The wire can take more bytes. */
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
