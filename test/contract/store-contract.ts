import { describe, it, onTestFinished } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { TestClock } from "../support/test-clock.ts";
import { agreementCase } from "./agreement-case.ts";
import { apiCases } from "./api-cases.ts";
import { apiDeletionCases } from "./api-deletion-cases.ts";
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
import { storedKeyCases } from "./stored-key-cases.ts";
import { updateKeyCases } from "./update-key-cases.ts";
import { updateRemainingCases } from "./update-remaining-cases.ts";
import { usageCases } from "./usage-cases.ts";
import { usageCostCases } from "./usage-cost-cases.ts";

/** Everything that any store promises. */
export const storeContract: readonly ContractCase[] = [
  ...keyCases,
  ...storedKeyCases,
  ...listCases,
  ...foreignListCases,
  ...eventCases,
  ...eventActorCases,
  ...idempotencyCases,
  ...rootKeyCases,
  ...apiCases,
  ...apiDeletionCases,
  ...ownerCases,
  ...ownerDeletionCases,
  ...ownerCounterCases,
  ...ownerListCases,
  ...changeCases,
  ...usageCases,
  ...usageCostCases,
  ...refillCases,
  ...spendingCases,
  ...spendingAccessCases,
  ...updateKeyCases,
  ...updateRemainingCases,
  ...rerollCases,
  ...importCases,
  ...permitCases,
  ...permitClockCases,
  ...permitCostCases,
  ...freeWindowCases,
  ...rateLimitCases,
  ...namedLimitCases,
  agreementCase,
  permitAgreementCase,
];

/** What is promised where the actor of each event is set by the check of the root key. */
export const checkedStoreContract = storeContract.filter((each) => !eventActorCases.includes(each));

/** Tests a store against the contract. Each case gets a new, empty store that uses the given clock. */
export function describeStoreContract(
  name: string,
  open: (clock: TestClock) => Promise<Store>,
  cases: readonly ContractCase[],
): void {
  describe(`the ${name} store keeps the contract`, () => {
    it.each(cases)("$name", async ({ run }) => {
      const clock = new TestClock();
      const store = await open(clock);
      onTestFinished(() => store.close());
      await run(store, clock);
    });
  });
}
