import type { SubjectGroup } from "./coalescing-lanes.ts";

/**
 * Commits what is left of a batch after callers have given up. Of each group only the live items are committed. A group
 * without any gets `notExecuted` as its result, and a batch without any is not committed at all.
 */
export async function commitLive<Item, Result, NotExecuted>(
  groups: readonly SubjectGroup<Item>[],
  isLive: (item: Item) => boolean,
  commit: (live: readonly LiveGroup<Item>[]) => Promise<readonly Result[]>,
  notExecuted: NotExecuted,
): Promise<readonly (Result | NotExecuted)[]> {
  const liveItems = groups.map(({ callers }) => callers.map(({ item }) => item).filter(isLive));
  const live = groups.flatMap(({ subject }, i) => {
    const items = liveItems[i] as Item[];
    return items.length > 0 ? [{ subject, items }] : [];
  });
  if (live.length === 0) return groups.map(() => notExecuted);
  const results = await commit(live);
  if (results.length !== live.length) throw new Error(`${results.length} results for ${live.length} subjects`);
  const next = results.values();
  return liveItems.map((items) => (items.length > 0 ? (next.next().value as Result) : notExecuted));
}

export interface LiveGroup<Item> {
  readonly subject: string;
  readonly items: readonly Item[];
}
