import { Duplex } from "node:stream";

/** The real connection behind a `NodeSocket`. */
interface Connection {
  /** Of the client. */
  remoteAddress(): string | undefined;
  /** Whether the client has shown a certificate that we trust. */
  hasTrustedCertificate(): boolean;
  /** Returns whether more may be written immediately. */
  write(chunk: Buffer | string, encoding: BufferEncoding): boolean;
  end(): void;
  destroy(): void;
  /** Node has room for more bytes. */
  onRead(): void;
}

/**
 * Node's HTTP server sees this as the client's socket. It gets only the bytes that we push into it, so we can read the
 * same connection before and after.
 */
export class NodeSocket extends Duplex {
  readonly #connection: Connection;
  #continueWriting: (() => void) | undefined;

  constructor(connection: Connection) {
    super({ autoDestroy: false });
    this.#connection = connection;
  }

  /** As of the sockets that Node opens itself. */
  get remoteAddress(): string | undefined {
    return this.#connection.remoteAddress();
  }

  /** As `hasTrustedCertificate` asks it. */
  get hasTrustedCertificate(): boolean {
    return this.#connection.hasTrustedCertificate();
  }

  /** The wire can take more bytes. */
  drained(): void {
    const continueWriting = this.#continueWriting;
    this.#continueWriting = undefined;
    continueWriting?.();
  }

  override _read(): void {
    this.#connection.onRead();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    if (this.#connection.write(chunk, encoding)) done();
    else this.#continueWriting = done;
  }

  override _final(done: () => void): void {
    this.#connection.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#connection.destroy();
    done(error);
  }
}
