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

  async function whileUsable<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    if (health.problem !== undefined) throw health.problem;
    const answer = await ask();
    // The write may have gone to a file that was lost meanwhile: it must not be acknowledged.
    if (health.problem !== undefined) throw health.problem;
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
      async change(command, idempotency) {
        const outcome = await whileUsable(() => management.change(command, idempotency));
        if (outcome.outcome === "missing" && health.doubt !== undefined) throw health.doubt;
        return outcome;
      },
      async read(query) {
        const answer = await whileUsable(() => management.read(query));
        // A list says of what is not in it that there is none.
        const isAbsence = answer === undefined || "limit" in query;
        if (isAbsence && health.doubt !== undefined) throw health.doubt;
        return answer;
      },
    },
    rootKeys: {
      async findByDigest(digest) {
        const verdict = await whileUsable(() => rootKeys.findByDigest(digest));
        if (verdict === undefined && health.doubt !== undefined) throw health.doubt;
        return verdict;
      },
      async presence(nowMs) {
        const presence = await whileUsable(() => rootKeys.presence(nowMs));
        // This answer would cause a new root key to be generated.
        if (presence === "none" && health.doubt !== undefined) throw health.doubt;
        return presence;
      },
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
