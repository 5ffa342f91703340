import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { TestClock } from "../support/test-clock.ts";
import { agreementCase } from "./agreement-case.ts";
import { apiCases } from "./api-cases.ts";
import { apiDeletionCases } from "./api-deletion-cases.ts";
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
import { brokenOwnerDeletions } from "./broken-owner-deletions.ts";
import { brokenOwners } from "./broken-owners.ts";
import { brokenPermitLedgers } from "./broken-permit-ledgers.ts";
import { brokenRerolls } from "./broken-rerolls.ts";
import { brokenSpending } from "./broken-spending.ts";
import { brokenUpdates } from "./broken-updates.ts";
import { changeCases } from "./change-cases.ts";
import type { ContractCase } from "./contract-case.ts";
import { eventActorCases, eventCases } from "./event-cases.ts";
import { foreignListCases } from "./foreign-list-cases.ts";
import { freeWindowCases } from "./free-window-cases.ts";
import { idempotencyCases } from "./idempotency-cases.ts";
import { importCases } from "./import-cases.ts";
import { keyCases } from "./key-cases.ts";
import { listCases } from "./list-cases.ts";
import { namedLimitCases } from "./named-limit-cases.ts";
import { ownerCases } from "./owner-cases.ts";
import { ownerCounterCases } from "./owner-counter-cases.ts";
import { ownerDeletionCases } from "./owner-deletion-cases.ts";
import { ownerListCases } from "./owner-list-cases.ts";
import { permitAgreementCase } from "./permit-agreement-case.ts";
import { permitCases } from "./permit-cases.ts";
import { permitClockCases } from "./permit-clock-cases.ts";
import { permitCostCases } from "./permit-cost-cases.ts";
import { rateLimitCases } from "./rate-limit-cases.ts";
import { refillCases } from "./refill-cases.ts";
import { rerollCases } from "./reroll-cases.ts";
import { rootKeyCases } from "./root-key-cases.ts";
import { spendingAccessCases } from "./spending-access-cases.ts";
import { spendingCases } from "./spending-cases.ts";
import { storeContract } from "./store-contract.ts";
import { storedKeyCases } from "./stored-key-cases.ts";
import { updateKeyCases } from "./update-key-cases.ts";
import { updateRemainingCases } from "./update-remaining-cases.ts";
import { usageCases } from "./usage-cases.ts";
import { usageCostCases } from "./usage-cost-cases.ts";

/** What is about the same thing: the broken stores, and the cases that should notice them. */
const topics: readonly (readonly [readonly BrokenStore[], readonly ContractCase[]])[] = [
  [brokenKeyStores, [...keyCases, ...storedKeyCases, ...idempotencyCases, ...updateKeyCases, ...permitCases]],
  [brokenLists, listCases],
  [brokenForeignLists, foreignListCases],
  [brokenEvents, [...eventCases, ...eventActorCases]],
  [brokenRootKeyStores, rootKeyCases],
  [brokenFeeds, changeCases],
  [brokenLedgers, [...usageCases, ...usageCostCases, ...refillCases, agreementCase]],
  [brokenCharges, usageCostCases],
  [brokenSpending, [...spendingCases, ...spendingAccessCases]],
  [
    brokenPermitLedgers,
    [
      ...permitCases,
      ...permitClockCases,
      ...permitCostCases,
      ...freeWindowCases,
      ...rateLimitCases,
      permitAgreementCase,
    ],
  ],
  [brokenNamedLimits, namedLimitCases],
  [brokenKeyUpdates, updateKeyCases],
  [brokenUpdates, updateRemainingCases],
  [brokenApis, [...apiCases, ...apiDeletionCases]],
  [brokenOwnerDeletions, ownerDeletionCases],
  [brokenOwners, [...ownerCases, ...ownerCounterCases, ...ownerListCases]],
  [brokenRerolls, rerollCases],
  [brokenImports, importCases],
];
const brokenStores = topics.flatMap(([stores]) => stores);

/** The names of the contract's cases that each broken store fails, by its mistake. */
const failures = new Map<string, readonly string[]>();

// A random sequence that a broken store fails is not made shorter first: it is enough that it fails.
fc.configureGlobal({ endOnFailure: true });

beforeAll(async () => {
  for (const [stores, cases] of topics) {
    for (const broken of stores) failures.set(broken.mistake, await failedCases(broken, cases));
  }
});

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

async function failedCases(broken: BrokenStore, cases: readonly ContractCase[]): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const each of cases) {
    const clock = new TestClock();
    await each.run(broken.open(clock), clock).catch(() => failed.push(each.name));
  }
  return failed;
}
