import net from "node:net";

/** A connection that sends the given bytes and keeps everything that it receives. */
export class RawSocket {
  readonly #socket: net.Socket;
  #heard: Buffer = Buffer.alloc(0);
  /** Resolves once the other side has closed. */
  readonly closed: Promise<void>;

  constructor(port: number) {
    this.#socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    this.#socket.on("data", (chunk: Buffer) => {
      this.#heard = Buffer.concat([this.#heard, chunk]);
    });
    // These connections are expected to be cut off.
    this.#socket.on("error", () => {});
    this.#socket.on("end", () => this.#socket.end());
    this.closed = new Promise((resolve) => this.#socket.on("close", () => resolve()));
  }

  get heard(): Buffer {
    return this.#heard;
  }

  get open(): boolean {
    return !this.#socket.destroyed;
  }

  say(bytes: Uint8Array | string): this {
    this.#socket.write(bytes);
    return this;
  }

  /** Stops reading: answers from now on stay in buffers. */
  deafen(): this {
    this.#socket.pause();
    return this;
  }

  /** Sends nothing more, but still reads. */
  finish(): this {
    this.#socket.end();
    return this;
  }

  hangUp(how: "politely" | "abruptly" = "politely"): void {
    if (how === "politely") this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  /** Resolves to all that was heard, once the other side has closed or been silent for a while. */
  async listen(quietMs = 60): Promise<string> {
    let before = -1;
    while (this.open && (this.#heard.length > before || this.#heard.length === 0)) {
      before = this.#heard.length;
      await Promise.race([this.closed, new Promise((resolve) => setTimeout(resolve, quietMs))]);
    }
    return this.#heard.toString("latin1");
  }

  /** Resolves to all that was heard, once this holds of it or the other side has closed. */
  async hear(isEnough: (heard: Buffer) => boolean): Promise<string> {
    while (this.open && !isEnough(this.#heard)) {
      await Promise.race([this.closed, new Promise<void>((resolve) => this.#socket.once("data", () => resolve()))]);
    }
    return this.#heard.toString("latin1");
  }

  /** Says one byte after the other, each after a pause, until cut off. Resolves when the other side has closed. */
  async trickle(bytes: Uint8Array | string, pauseMs: number): Promise<void> {
    for (const byte of Buffer.from(bytes as string)) {
      if (!this.open) return;
      this.say(Buffer.of(byte));
      await Promise.race([this.closed, new Promise((resolve) => setTimeout(resolve, pauseMs))]);
    }
    await this.closed;
  }
}
