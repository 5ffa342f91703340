import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { PermitResult } from "./permit-ledger.ts";
import type { Store } from "./store.ts";
import type { StoreHealth } from "./store-health.ts";
import type { ChargeResult } from "./usage-ledger.ts";

/**
 * Wraps a store according to its health. With a problem every call throws `Unavailable`. With a doubt, "not found"
 * becomes `Unavailable`, and so does a list; other answers stay: a damaged file must never make a valid key look invalid.
 */
export function guardStore(store: Store, health: StoreHealth): Store {
  const { keys, management, rootKeys } = store;

  /** `isAbsence`: whether the answer says that there is nothing, which is not known while there is a doubt. */
  async function whileUsable<Answer>(
    ask: () => Promise<Answer>,
    isAbsence: (answer: Answer) => boolean = () => false,
  ): Promise<Answer> {
    if (health.problem !== undefined) throw health.problem;
    const answer = await ask();
    // The write may have gone to a file that was lost meanwhile: it must not be acknowledged.
    const failure = health.problem ?? (isAbsence(answer) ? health.doubt : undefined);
    if (failure !== undefined) throw failure;
    return answer;
  }

  /** Rejects instead of throwing, so that a look-up may be answered synchronously and still never throws. */
  function checkFound<Answer>(answer: Answer | undefined): MaybePromise<Answer | undefined> {
    const failure = health.problem ?? (answer === undefined ? health.doubt : undefined);
    return failure === undefined ? answer : Promise.reject(failure);
  }

  async function missingIsFailed<Result extends ChargeResult | PermitResult>(
    ask: () => Promise<readonly Result[]>,
  ): Promise<readonly (Result | Failed)[]> {
    const results = await whileUsable(ask);
    const { doubt } = health;
    if (doubt === undefined) return results;
    return results.map((result) =>
      result.outcome === "missing" ? { outcome: "failed", reason: doubt.message } : result,
    );
  }

  return {
    keys: {
      findByDigest(...args) {
        if (health.problem !== undefined) return Promise.reject(health.problem);
        return andThen(keys.findByDigest(...args), checkFound);
      },
      findOwner(ownerId) {
        if (health.problem !== undefined) return Promise.reject(health.problem);
        return andThen(keys.findOwner(ownerId), checkFound);
      },
    },
    management: {
      change: (command, idempotency) =>
        whileUsable(
          () => management.change(command, idempotency),
          ({ outcome }) => outcome === "missing",
        ),
      // A list says of what is not in it that there is none.
      read: (query) =>
        whileUsable(
          () => management.read(query),
          (answer) => answer === undefined || "limit" in query,
        ),
    },
    rootKeys: {
      findByDigest: (digest) =>
        whileUsable(
          () => rootKeys.findByDigest(digest),
          (verdict) => verdict === undefined,
        ),
      // The answer that there is none would cause a new root key to be generated.
      presence: (nowMs) =>
        whileUsable(
          () => rootKeys.presence(nowMs),
          (presence) => presence === "none",
        ),
      announceChange: () => whileUsable(() => rootKeys.announceChange()),
      retireGenerated: (...args) => whileUsable(() => rootKeys.retireGenerated(...args)),
      addFirst: (...args) => whileUsable(() => rootKeys.addFirst(...args)),
    },
    changes: { read: (since) => whileUsable(() => store.changes.read(since)) },
    usageLanes: store.usageLanes.map((lane) => ({ settle: (charges) => missingIsFailed(() => lane.settle(charges)) })),
    permitLanes: store.permitLanes.map((lane) => ({ exchange: (asks) => missingIsFailed(() => lane.exchange(asks)) })),
    health,
    tidy: (...args) => whileUsable(() => store.tidy(...args)),
    close: () => store.close(),
  };
}

interface Failed {
  readonly outcome: "failed";
  readonly reason: string;
}
