import type { FeedChange, FeedNews, FeedPosition } from "../../src/store/change-feed.ts";
import { type BrokenStore, feed } from "./break-store.ts";

const nothing: readonly FeedChange[] = [];

/** Tells other changes than there are. */
function tells(mistake: string, change: (news: FeedNews, since: FeedPosition | undefined) => FeedNews): BrokenStore {
  return feed(mistake, (read) => async (since) => change(await read(since), since));
}

/** FeedChange feeds with one plausible mistake each. */
export const brokenFeeds: readonly BrokenStore[] = [
  tells("tells a new reader that nothing has changed", (news, since) =>
    since === undefined ? { ...news, changed: nothing } : news,
  ),
  tells("forgets everything at each read", (news) => ({ ...news, changed: "everything" })),
  tells("tells no change", (news) => ({ ...news, changed: news.changed === "everything" ? "everything" : nothing })),
  tells("leaves the digests out", (news) => ({
    ...news,
    changed:
      news.changed === "everything"
        ? "everything"
        : news.changed.map((change) => (change.kind === "key" ? { ...change, digests: [] } : change)),
  })),
  tells("tells each change twice", (news) => ({
    ...news,
    changed: news.changed === "everything" ? "everything" : [...news.changed, ...news.changed],
  })),
  tells("never moves on", (news, since) => ({ ...news, position: since ?? news.position })),
  tells("moves on by two", ({ position, ...news }) => ({
    ...news,
    position: { ...position, transaction: position.transaction + 1 },
  })),
  feed("tells one reader only", (read) => {
    let toldTo = 0;
    return async (since) => {
      const news = await read(since);
      const isGiven = news.changed !== "everything" && since !== undefined && since.transaction < toldTo;
      toldTo = Math.max(toldTo, news.position.transaction);
      return isGiven ? { ...news, changed: nothing } : news;
    };
  }),
  feed("tells at most ten changes and moves on", (read) => async (since) => {
    const news = await read(since);
    return news.changed === "everything" ? news : { ...news, changed: news.changed.slice(0, 10) };
  }),
  feed("does not look at the epoch", (read) => async (since) => {
    const { epoch } = (await read(undefined)).position;
    return read(since && { ...since, epoch });
  }),
  feed("does not notice a position in the future", (read) => async (since) => {
    const { transaction } = (await read(undefined)).position;
    return read(since && { ...since, transaction: Math.min(since.transaction, transaction) });
  }),
  feed("knows only positions that it has made itself", (read) => {
    const made = new WeakSet<FeedPosition>();
    return async (since) => {
      const news = await read(since && made.has(since) ? since : undefined);
      made.add(news.position);
      return news;
    };
  }),
  feed("tells of new keys too", (read, store) => {
    const created: FeedChange[] = [];
    const { change } = store.management;
    store.management.change = async (command, record) => {
      if (command.kind === "createKey") {
        const { id: keyId, secretDigest } = command.created;
        created.push({ kind: "key", keyId, digests: [secretDigest] });
      }
      return change(command, record);
    };
    return async (since) => {
      const news = await read(since);
      return news.changed === "everything" ? news : { ...news, changed: [...news.changed, ...created.splice(0)] };
    };
  }),
  tells("does not tell of root keys", (news) => ({
    ...news,
    changed: news.changed === "everything" ? "everything" : news.changed.filter(({ kind }) => kind !== "rootKeys"),
  })),
];
