import { beforeAll, describe, expect, it } from "vitest";
import { TestClock } from "../support/test-clock.ts";
import type { BrokenStore } from "./break-store.ts";
import { brokenApis } from "./broken-apis.ts";
import { brokenCharges } from "./broken-charges.ts";
import { brokenEvents } from "./broken-events.ts";
import { brokenFeeds } from "./broken-feeds.ts";
import { brokenForeignLists } from "./broken-foreign-lists.ts";
import { brokenImports } from "./broken-imports.ts";
import { brokenKeyStores } from "./broken-key-stores.ts";
import { brokenKeyUpdates } from "./broken-key-updates.ts";
import { brokenLedgers, brokenRootKeyStores } from "./broken-ledgers.ts";
import { brokenLists } from "./broken-lists.ts";
import { brokenNamedLimits } from "./broken-named-limits.ts";
import { brokenOwners } from "./broken-owners.ts";
import { brokenPermitLedgers } from "./broken-permit-ledgers.ts";
import { brokenRerolls } from "./broken-rerolls.ts";
import { brokenUpdates } from "./broken-updates.ts";
import type { ContractCase } from "./contract-case.ts";
import { foreignListCases } from "./foreign-list-cases.ts";
import { ownerCases } from "./owner-cases.ts";
import { ownerCounterCases } from "./owner-counter-cases.ts";
import { ownerListCases } from "./owner-list-cases.ts";
import { storeContract } from "./store-contract.ts";

const brokenStores = [
  ...brokenKeyStores,
  ...brokenLists,
  ...brokenForeignLists,
  ...brokenEvents,
  ...brokenRootKeyStores,
  ...brokenFeeds,
  ...brokenLedgers,
  ...brokenCharges,
  ...brokenPermitLedgers,
  ...brokenNamedLimits,
  ...brokenKeyUpdates,
  ...brokenUpdates,
  ...brokenApis,
  ...brokenOwners,
  ...brokenRerolls,
  ...brokenImports,
];

/** The names of the contract's cases that each broken store fails, by its mistake. */
const failures = new Map<string, readonly string[]>();

beforeAll(async () => {
  for (const broken of brokenStores) failures.set(broken.mistake, await failedCases(broken));
}, 300_000);

describe("the store contract is broken by a store that", () => {
  it.each(brokenStores)("$mistake", ({ mistake }) => {
    expect(failures.get(mistake)).not.toEqual([]);
  });
});

describe("some broken store fails the promise that", () => {
  it.each(storeContract)("$name", ({ name }) => {
    expect([...failures.values()].flat()).toContain(name);
  });
});

/** Owners have nothing to do with what other stores break, nor these with other cases. */
const casesOfOwners = [...ownerCases, ...ownerCounterCases, ...ownerListCases];

function casesFor(broken: BrokenStore): readonly ContractCase[] {
  if (brokenOwners.includes(broken)) return casesOfOwners;
  // These store thousands of keys: against all broken stores they would take as long as all other cases together.
  const left = brokenForeignLists.includes(broken) ? [] : foreignListCases;
  return storeContract.filter((one) => !left.includes(one) && !casesOfOwners.includes(one));
}

async function failedCases(broken: BrokenStore): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const each of casesFor(broken)) {
    const clock = new TestClock();
    await each.run(broken.open(clock), clock).catch(() => failed.push(each.name));
  }
  return failed;
}
