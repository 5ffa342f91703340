import { expect } from "vitest";
import { counterOfOwner } from "../../src/domain/subject.ts";
import { createOwner, deleteKey, deleteOwner, updateOwnerRemaining } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleOwner } from "./owner-cases.ts";
import { noon, noonHour, ofOwner, readOne, spentBefore, step, useOwner } from "./spending-cases.ts";
import { charge, created } from "./usage-cases.ts";

/** What of spending is found by whoever may see some APIs only. */
export const spendingAccessCases: readonly ContractCase[] = [
  {
    name: "who may see some APIs only finds what was spent by keys of those, also of keys that are gone",
    async run(store, clock) {
      clock.stepTo(noon);
      const mine = await created(store, clock, { apiId: "mine", remaining: 9 });
      const gone = await created(store, clock, { apiId: "mine", remaining: 9 });
      const theirs = await created(store, clock, { apiId: "theirs", remaining: 9 });
      const theirsGone = await created(store, clock, { apiId: "theirs", remaining: 9 });
      for (const key of [mine, gone, theirs, theirsGone]) await charge(store, key, 2);
      await deleteKey(store.management, gone.id);
      await deleteKey(store.management, theirsGone.id);
      const ids = [mine.id, gone.id, theirs.id, theirsGone.id, "unknown"];
      const found = await store.management.read({
        kind: "spending",
        of: "key",
        ids,
        hours: [noonHour + 1],
        apiIds: ["mine", "other"],
      });
      expect(found.counters.map((each) => each?.spent)).toEqual([2, 2, undefined, undefined, undefined]);
      expect(found.counters.map((each) => each?.spentBefore)).toEqual([[2], [2], undefined, undefined, undefined]);
    },
  },
  {
    name: "who may see some APIs only finds owners of those, and nothing of who had the same id before",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const mine = { apiIds: ["mine"] };
      await createOwner(management, sampleOwner("one", { remaining: 9, apiIds: ["theirs"] }));
      await createOwner(management, sampleOwner("of all", { remaining: 9 }));
      for (const id of ["one", "of all"]) await useOwner(store, id, 3);
      expect(await readOne(store, "one", { ...ofOwner, ...mine })).toBeUndefined();
      expect(await readOne(store, "of all", { ...ofOwner, ...mine })).toBeUndefined();
      await updateOwnerRemaining(management, "one", "set", undefined);
      await deleteOwner(management, "one");
      expect(await readOne(store, "one", { ...ofOwner, ...mine })).toBeUndefined();
      step(clock, 2);
      await createOwner(management, sampleOwner("one", { remaining: 9, apiIds: ["mine"] }));
      await useOwner(store, "one", 2);
      // 3 is what the former owner spent; who sees all sees both.
      expect(await spentBefore(store, "one", [0, 1, 2, 3], { ...ofOwner, ...mine })).toEqual([3, 3, 3, 5, 5]);
      expect(await spentBefore(store, "one", [0, 1, 2, 3], ofOwner)).toEqual([0, 3, 3, 5, 5]);
      step(clock, 1);
      await deleteOwner(management, "one");
      expect(await spentBefore(store, "one", [0, 3, 9], { ...ofOwner, ...mine })).toEqual([3, 5, 5, 5]);
      expect(await readOne(store, "one", { ...ofOwner, apiIds: ["theirs"] })).toBeUndefined();
    },
  },
  {
    name: "the counter of an owner is not found by its subject as the id of a key",
    async run(store, clock) {
      clock.stepTo(noon);
      await createOwner(store.management, sampleOwner("one", { remaining: 9, apiIds: ["mine"] }));
      await useOwner(store, "one", 3);
      const asKey = await store.management.read({
        kind: "spending",
        of: "key",
        ids: [counterOfOwner("one")],
        hours: [],
      });
      expect(asKey.counters).toMatchObject([{ spent: 0, counter: undefined }]);
      await deleteOwner(store.management, "one");
      expect(await readOne(store, counterOfOwner("one"), { apiIds: ["mine"] })).toBeUndefined();
    },
  },
];
