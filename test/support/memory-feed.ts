import type { ChangeFeed, FeedChange, FeedNews, FeedPosition } from "../../src/store/change-feed.ts";

/** The change feed of the plain store. */
export class MemoryFeed implements ChangeFeed {
  readonly #changes: FeedChange[] = [];
  hasImportedKeys = false;

  push(...changes: readonly FeedChange[]): void {
    this.#changes.push(...changes);
  }

  readonly read = async (since: FeedPosition | undefined): Promise<FeedNews> => {
    const { hasImportedKeys } = this;
    const position = { epoch: "memory", transaction: this.#changes.length };
    const isKnown = since?.epoch === position.epoch && since.transaction <= position.transaction;
    const changed = isKnown ? this.#changes.slice(since.transaction) : "everything";
    return { position, changed, hasImportedKeys, ageMs: 0 };
  };
}
