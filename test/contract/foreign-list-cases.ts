import { expect } from "vitest";
import type { ImportedKey } from "../../src/store/commands.ts";
import type { EventsQuery, KeysQuery } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import { importKeys, listEventPages, listPages, testEvent } from "../support/manage.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";

/** More keys, and events of them, than the least number that a page examines. */
const foreignKeys = 1600;
const importedAtOnce = 100;

let made = 0;

/** Keys of an owner. Ids are in the order in which they are made. */
function ownedKeys(clock: TestClock, apiId: string, count: number): readonly ImportedKey[] {
  return Array.from({ length: count }, () => ({
    ...sampleKey(clock, { id: `key_owned_${(++made).toString().padStart(9, "0")}`, apiId, ownerId: "owner" }),
    eventId: testEvent().id,
  }));
}

const keyLists: readonly Partial<KeysQuery>[] = [
  { ownerId: "owner", apiIds: ["mine"] },
  { ownerId: "owner", apiIds: ["mine", "mine", "also mine"] },
  { ownerId: "owner", apiIds: ["mine", "also mine"], search: "live" },
  { ownerId: "owner", apiIds: ["also mine"], search: "live" },
  { ownerId: "owner", apiIds: ["mine"], enabled: false },
  { ownerId: "owner", apiIds: ["mine"], apiId: "mine", search: "live" },
  { ownerId: "owner", apiIds: ["mine"], apiId: "foreign", search: "live" },
  { ownerId: "owner", apiIds: [] },
];

const method = "keys.importKeys";
const eventLists: readonly Partial<EventsQuery>[] = [
  { apiIds: ["mine"] },
  { apiIds: ["mine", "mine", "also mine"] },
  { apiIds: ["mine", ...Array.from({ length: 99 }, (_, i) => `none ${i}`)] },
  { apiIds: ["mine"], method },
  { apiIds: ["mine", "also mine"], method },
  { apiIds: ["also mine"], method },
  { apiIds: ["mine"], method, sinceMs: 1 },
  { apiIds: [], method },
];

/** Every page of every list, as it is answered to a root key that is limited to these APIs. */
async function allPages({ management }: Store): Promise<readonly unknown[]> {
  const pages: unknown[] = [];
  for (const limit of [2, 100]) {
    for (const query of keyLists) pages.push([query, await listPages(management, query, { limit })]);
    for (const query of eventLists) pages.push([query, await listEventPages(management, query, { limit })]);
  }
  return pages;
}

export const foreignListCases: readonly ContractCase[] = [
  {
    name: "a list for some APIs, its pages and cursors included, is the same whatever other APIs have",
    async run(store, clock) {
      await importKeys(store.management, ownedKeys(clock, "mine", 3));
      const before = await allPages(store);
      for (let stored = 0; stored < foreignKeys; stored += importedAtOnce) {
        await importKeys(store.management, ownedKeys(clock, "foreign", importedAtOnce));
      }
      expect(await allPages(store)).toEqual(before);
    },
  },
];
