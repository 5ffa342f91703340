import type { Writable } from "node:stream";

/** Most bytes of lines that wait for their reader. */
const waitingBytesMax = 1024 * 1024;

/**
 * Writes lines to standard error. Whoever reads them may stop reading, or be gone: that neither ends the service nor fills
 * its memory. Lines without room are dropped, and `tellDropped` is told how many when there is room again.
 */
export class LogOutput {
  readonly #stream: Writable;
  readonly #tellDropped: (count: number) => void;
  #dropped = 0;

  constructor(stream: Writable, tellDropped: (count: number) => void) {
    this.#stream = stream;
    this.#tellDropped = tellDropped;
    ignoreLostReader(stream);
  }

  write(line: string): void {
    if (this.#stream.writableLength + line.length > waitingBytesMax) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0) {
      const count = this.#dropped;
      this.#dropped = 0;
      this.#tellDropped(count);
    }
    this.#stream.write(line);
  }
}

/** Without a listener its error would end the process. */
export function ignoreLostReader(stream: Writable): void {
  stream.on("error", () => {});
}
