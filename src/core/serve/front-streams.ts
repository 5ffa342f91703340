/** The open streams of all edges, and whether they are to end. */
export class FrontStreams {
  #open = 0;
  #isStopping = false;
  #onEmpty: (() => void) | undefined;

  /** The coordinator stops: each stream tells its edge so, and no new one is served. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** A stream has opened. Answers what to call when it has ended. */
  enter(): () => void {
    this.#open++;
    return () => {
      this.#open--;
      if (this.#open === 0) this.#onEmpty?.();
    };
  }

  /** Asks all edges to end their streams. Resolves when they have, or after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    if (this.#open === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }
}
