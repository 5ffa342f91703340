import { waitAtMost } from "../../ambient/with-timeout.ts";
import type { Change } from "../../store/changes.ts";

/** What one open stream is asked to do. */
interface OpenStream {
  /** Resolves when the front has acted on the change, or has gone. */
  announce(change: Change): Promise<void>;
}

/** The open streams of all fronts, and whether they are to end. */
export class FrontStreams {
  readonly #open = new Set<OpenStream>();
  #isStopping = false;
  #onEmpty: (() => void) | undefined;

  /** This process stops: each stream announces it, and no new one is served. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** A stream has opened. Answers what to call when it has ended. */
  enter(stream: OpenStream): () => void {
    this.#open.add(stream);
    return () => {
      this.#open.delete(stream);
      if (this.#open.size === 0) this.#onEmpty?.();
    };
  }

  /** Resolves when no front that has a stream serves what was changed as it was. */
  async announce(change: Change): Promise<void> {
    await Promise.all([...this.#open].map((stream) => stream.announce(change)));
  }

  /** Asks all fronts to end their streams. Resolves when they have, or after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopping = true;
    if (this.#open.size === 0) return;
    const isEmpty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    await waitAtMost(timeoutMs, isEmpty);
  }
}
