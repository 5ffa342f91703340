import { newCounter } from "../../src/domain/usage.ts";
import { type BrokenStore, lists } from "./break-store.ts";

/** How many keys each cursor of a broken store has passed. */
const passed = (cursor: string | undefined) => Number(cursor ?? 0);

export const brokenLists: readonly BrokenStore[] = [
  lists("pages by number", async (list, query) => {
    const { items, cursor } = await list({ ...query, after: undefined, limit: passed(query.after) + query.limit });
    const page = { items: items.slice(passed(query.after)) };
    return cursor === undefined ? page : { ...page, cursor: `${passed(query.after) + query.limit}` };
  }),
  lists("pages by the time of creation, and skips what has the same", async (list, { after, ...query }) => {
    const all = (await list({ ...query, limit: 1e6 })).items.toSorted((a, b) => b.createdAtMs - a.createdAtMs);
    const rest = all.filter(({ createdAtMs }) => after === undefined || createdAtMs < Number(after));
    const items = rest.slice(0, query.limit);
    return rest.length > items.length ? { items, cursor: `${items.at(-1)?.createdAtMs}` } : { items };
  }),
  lists("begins a page with the last key of the one before", async (list, query) => {
    const page = await list(query);
    return page.cursor === undefined ? page : { ...page, cursor: `${page.cursor}0` };
  }),
  lists("shows keys of other APIs", (list, query) => list({ ...query, apiId: undefined })),
  lists("forgets the API where there is an owner", (list, query) =>
    list(query.ownerId === undefined ? query : { ...query, apiId: undefined }),
  ),
  lists("shows a limited root key the keys of all APIs", (list, query) => list({ ...query, apiIds: undefined })),
  lists("lets an API be named that is not among those allowed", (list, query) =>
    list(query.apiId === undefined ? query : { ...query, apiIds: undefined }),
  ),
  lists("ignores the owner", (list, query) =>
    list(query.apiId === undefined ? query : { ...query, ownerId: undefined }),
  ),
  lists("ignores the environment", (list, query) => list({ ...query, environment: undefined })),
  lists("ignores whether keys are enabled", (list, query) => list({ ...query, enabled: undefined })),
  lists("ignores the expiry", (list, query) => list({ ...query, expiresBeforeMs: undefined })),
  lists("takes keys without expiry for expired ones", async (list, { expiresBeforeMs, ...query }) => {
    const page = await list(query);
    const isBefore = ({ expiresAtMs = 0 }) => expiresBeforeMs === undefined || expiresAtMs < expiresBeforeMs;
    return { ...page, items: page.items.filter(isBefore) };
  }),
  lists("shows keys that expire at that very moment", (list, query) =>
    list({ ...query, expiresBeforeMs: query.expiresBeforeMs && query.expiresBeforeMs + 1 }),
  ),
  lists("ignores the search", (list, query) => list({ ...query, search: undefined })),
  lists("searches without regard to letter case", async (list, { search, ...query }) => {
    const page = await list(query);
    const begins = (text = "") => text.toLowerCase().startsWith((search ?? "").toLowerCase());
    return { ...page, items: page.items.filter(({ name, start }) => begins(name) || begins(start)) };
  }),
  lists("searches for names only", async (list, query) => {
    const page = await list(query);
    return {
      ...page,
      items: page.items.filter(({ name }) => query.search === undefined || name?.startsWith(query.search)),
    };
  }),
  lists("takes a search for a pattern", async (list, { search, ...query }) => {
    const page = await list(query);
    const pattern = new RegExp(`^${(search ?? "").replaceAll("%", ".*").replaceAll("_", ".")}`);
    return { ...page, items: page.items.filter(({ name = "", start }) => pattern.test(name) || pattern.test(start)) };
  }),
  lists("shows the oldest first", async (list, query) => {
    const page = await list(query);
    return { ...page, items: page.items.toReversed() };
  }),
  lists("gives a cursor where nothing follows", async (list, query) => {
    const page = await list(query);
    const last = page.items.at(-1);
    return last === undefined ? page : { ...page, cursor: last.id };
  }),
  lists("forgets the cursor of a full page", async (list, query) => {
    const { items } = await list(query);
    return { items };
  }),
  lists("sorts ids by language", async (list, { after, ...query }) => {
    const { items } = await list({ ...query, limit: 1e6 });
    const sorted = items.toSorted((a, b) => b.id.localeCompare(a.id, "en"));
    const at = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
    const page = sorted.slice(at, at + query.limit);
    return at + query.limit < sorted.length ? { items: page, cursor: page.at(-1)?.id as string } : { items: page };
  }),
  lists("shows metadata of no key", async (list, query) => {
    const page = await list(query);
    return { ...page, items: page.items.map((key) => ({ ...key, meta: {} })) };
  }),
  lists("shows balances without refills", async (list, query) => {
    const page = await list(query);
    const stale = newCounter(1, undefined, 0);
    return { ...page, items: page.items.map((key) => ({ ...key, counter: key.counter && stale })) };
  }),
  (() => {
    const seen = new Map<string, number>();
    return lists("shows changes one list late", async (list, query) => {
      const page = await list(query);
      const name = JSON.stringify(query);
      const before = seen.get(name) ?? page.items.length;
      seen.set(name, page.items.length);
      return { ...page, items: page.items.slice(Math.max(0, page.items.length - before)) };
    });
  })(),
];
