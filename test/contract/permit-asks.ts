import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import type { PermitAsk, PermitGrant } from "../../src/domain/permit-window.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { Store } from "../../src/store/store.ts";
import type { TestClock } from "../support/test-clock.ts";
import { exchange } from "./settle.ts";
import { created } from "./usage-cases.ts";

export const windowMs = 60_000;

export function strict(limit: number, durationMs = windowMs): RateLimit {
  return { mode: "strict", limit, durationMs };
}

/** A key in the store whose strict limit is this. */
export function createdStrict(store: Store, clock: TestClock, limit: number, durationMs = windowMs): Promise<NewKey> {
  return created(store, clock, { rateLimit: strict(limit, durationMs) });
}

/** An ask with these fields. For the others no request waits, all else is 0, and `holders` is 1. */
export function permitAsk(given: Partial<PermitAsk> = {}): PermitAsk {
  return { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 1, ...given };
}

/** The grant for one ask. Fails if it was not settled. */
export async function ask(store: Store, { id }: Pick<NewKey, "id">, given: Partial<PermitAsk>): Promise<PermitGrant> {
  const [result] = await exchange(store, [{ subject: id, ...permitAsk(given) }]);
  if (result?.outcome !== "settled") throw new Error(`the ask is ${result?.outcome}`);
  const { outcome: _, ...grant } = result;
  expect(grant.left, "no grant leaves less than nothing").toBeGreaterThanOrEqual(0);
  return grant;
}
