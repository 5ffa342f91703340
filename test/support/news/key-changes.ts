import { setTimeout as delay } from "node:timers/promises";
import type { KeysClient, VerifyKeyResponse } from "../../../src/sdk/index.ts";
import { rememberKey } from "../remember-key.ts";

/** What can be done to a key, and how a verification shows that it has not been heard of. */
export interface WatchedChange {
  readonly name: string;
  /** Returns when it was answered. */
  make(client: KeysClient, keyId: string): Promise<unknown>;
  isOld(answer: VerifyKeyResponse): boolean;
}

const ratelimit = { limit: 1_000_000, duration: 3_600_000 };

/** Every way to end or to narrow what a key allows. */
export const watchedChanges: readonly WatchedChange[] = [
  { name: "deleted", make: (client, keyId) => client.deleteKey({ keyId }), isOld: ({ valid }) => valid },
  {
    name: "disabled",
    make: (client, keyId) => client.updateKey({ keyId, enabled: false }),
    isOld: ({ valid }) => valid,
  },
  { name: "ended", make: (client, keyId) => client.updateKey({ keyId, expires: 1 }), isOld: ({ valid }) => valid },
  { name: "rerolled", make: (client, keyId) => client.rerollKey({ keyId }), isOld: ({ valid }) => valid },
  {
    name: "given a lower limit",
    make: (client, keyId) => client.updateKey({ keyId, ratelimit: { ...ratelimit, limit: 999_999 } }),
    isOld: (answer) => answer.ratelimit?.limit === ratelimit.limit,
  },
  {
    name: "given a lower strict limit",
    make: (client, keyId) => client.updateKey({ keyId, ratelimit: { ...ratelimit, limit: 999_998, async: false } }),
    isOld: (answer) => answer.ratelimit?.limit === ratelimit.limit,
  },
];

/**
 * Uses a key on every front without a break, changes it on the first, and answers how long after the change was answered each
 * of them last answered as before it, by the time of that answer; below 0: never.
 */
export async function lastOldMs(
  clients: readonly KeysClient[],
  { make, isOld }: WatchedChange,
  watchedMs: number,
): Promise<number[]> {
  const [first] = clients as [KeysClient];
  const { key, keyId } = await first.createKey({ apiId: "api", ratelimit });
  await rememberKey(clients, key);
  let isOver = false;
  const seen = clients.map(() => Promise.withResolvers<void>());
  const watching = clients.map(async (client, i) => {
    let lastMs = Number.NEGATIVE_INFINITY;
    while (!isOver) {
      // Which was asked before it was answered: an answer that was on its way when the change was made is no old one.
      const askedMs = performance.now();
      const answer = await client.verifyKey({ key }).catch(() => undefined);
      if (answer !== undefined && isOld(answer)) {
        lastMs = askedMs;
        seen[i]?.resolve();
      }
      await delay(5);
    }
    return lastMs;
  });
  // All of them have it in memory, or this would show nothing.
  await Promise.all(seen.map(({ promise }) => promise));
  await make(first, keyId);
  const changedMs = performance.now();
  await delay(watchedMs);
  isOver = true;
  return (await Promise.all(watching)).map((lastMs) => lastMs - changedMs);
}
