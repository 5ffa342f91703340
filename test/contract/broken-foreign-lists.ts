import { type BrokenStore, eventLists, lists } from "./break-store.ts";

/** As many as the engines examine at least. */
const examinedMax = 1500;

/** Stores whose lists for some APIs tell of others: they examine all rows, and leave out those of other APIs then. */
export const brokenForeignLists: readonly BrokenStore[] = [
  lists("counts keys of other APIs for the bound of a page", async (list, { apiIds, ...query }) => {
    if (apiIds === undefined || query.apiId !== undefined) return list({ ...query, apiIds });
    const examined = await list({ ...query, limit: examinedMax });
    const matching = examined.items.filter(({ apiId }) => apiIds.includes(apiId));
    const items = matching.slice(0, query.limit);
    const cursor = matching.length > items.length ? items.at(-1)?.id : examined.cursor;
    return cursor === undefined ? { items } : { items, cursor };
  }),
  eventLists("counts events of other APIs for the bound of a page", async (list, { apiIds, ...query }) => {
    if (apiIds === undefined || query.method === undefined) return list({ ...query, apiIds });
    const examined = await list({ ...query, limit: examinedMax });
    const matching = examined.items.filter(({ apiId = "" }) => apiIds.includes(apiId));
    const items = matching.slice(0, query.limit);
    const cursor = matching.length > items.length ? items.at(-1)?.id : examined.cursor;
    return cursor === undefined ? { items } : { items, cursor };
  }),
];
