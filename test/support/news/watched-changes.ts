import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { type LatchkeyClient, LatchkeyError, type VerifyKeyResponse } from "../../../src/sdk/index.ts";
import { createSurely, surely } from "../create-surely.ts";
import { rawClient } from "../raw-client.ts";
import { rememberKey } from "../remember-key.ts";
import { testRootKey } from "../test-root-key.ts";

/** What can be done to a key or a root key, and how answers show whether a front has heard of it. */
interface WatchedChange {
  readonly name: string;
  /** Makes what is to be changed, through the first front. */
  prepare(fronts: readonly Front[]): Promise<Watched>;
}

interface Watched {
  /** Returns when it was answered. */
  change(): Promise<unknown>;
  ask(front: Front): Promise<Answer>;
}

/** As before the change, as after it, or the front could not decide. */
type Answer = "old" | "new" | "undecided";

interface Front {
  readonly baseUrl: string;
  readonly client: LatchkeyClient;
}

/** Sent with every attempt of a call, so that it happens once. */
interface Repeated {
  readonly idempotencyKey: string;
}

/** For an answer to come, on a busy machine. */
const answerMs = 250;
/** After the last front has answered as after the change, all are asked for as long as this: none may go back. */
const goneMs = 500;
/** Between two questions. Many changes are watched at once, on all fronts: without a break they would wait for each other. */
const askAgainMs = 20;
const ratelimit = { limit: 1_000_000, duration: 3_600_000 };

function keyChange(
  name: string,
  make: (keys: LatchkeyClient["keys"], keyId: string, once: Repeated) => Promise<unknown>,
  isOld: (answer: VerifyKeyResponse) => boolean = ({ valid }) => valid,
): WatchedChange {
  return {
    name: `a key that is ${name}`,
    async prepare(fronts) {
      const [{ client }] = fronts as [Front];
      const { key, keyId } = await createSurely(client.keys, { apiId: "api", ratelimit });
      await rememberKey(
        fronts.map(({ client }) => client.keys),
        key,
      );
      return {
        change: () => surely((once) => make(client.keys, keyId, once)),
        ask: (front) =>
          front.client.keys.verifyKey({ key }).then(
            (answer) => (isOld(answer) ? "old" : "new"),
            () => "undecided",
          ),
      };
    },
  };
}

function rootKeyChange(
  name: string,
  make: (rootKeys: LatchkeyClient["rootKeys"], rootKeyId: string, once: Repeated) => Promise<unknown>,
): WatchedChange {
  return {
    name: `a root key that is ${name}`,
    async prepare(fronts) {
      const [{ client }] = fronts as [Front];
      const { keyId } = await createSurely(client.keys, { apiId: "api" });
      const { rootKey, rootKeyId } = await surely((repeated) =>
        client.rootKeys.createRootKey({ permissions: ["keys.read", "keys.update"] }, repeated),
      );
      return {
        change: () => surely((once) => make(client.rootKeys, rootKeyId, once)),
        async ask({ baseUrl }) {
          const { keys } = rawClient({ baseUrl, rootKey });
          // Checked on the front by what it remembers of the root key, and again where the key is read.
          const read = answerTo(keys.getKey({ keyId }));
          // A front that takes the root key for valid finds fault with the request, which goes no further.
          const misread = answerTo(keys.getKey({}));
          const answers = [await read, await misread];
          return (
            answers.find((answer) => answer === "old") ?? answers.find((answer) => answer === "undecided") ?? "new"
          );
        },
      };
    },
  };
}

const refusals: readonly string[] = ["UNAUTHORIZED", "FORBIDDEN", "TOO_MANY_REQUESTS"];

async function answerTo(call: Promise<unknown>): Promise<Answer> {
  try {
    await call;
    return "old";
  } catch (error) {
    if (!(error instanceof LatchkeyError)) throw error;
    if (error.code === "BAD_REQUEST") return "old";
    return refusals.includes(error.code) ? "new" : "undecided";
  }
}

export const deletion = keyChange("deleted", (keys, keyId, once) => keys.deleteKey({ keyId }, once));

/** Every way to end or to narrow what a key or a root key allows. */
const watchedChanges: readonly WatchedChange[] = [
  deletion,
  keyChange("disabled", (keys, keyId, once) => keys.updateKey({ keyId, enabled: false }, once)),
  keyChange("ended", (keys, keyId, once) => keys.updateKey({ keyId, expires: 1 }, once)),
  keyChange("rerolled", (keys, keyId, once) => keys.rerollKey({ keyId }, once)),
  keyChange(
    "given a lower limit",
    (keys, keyId, once) => keys.updateKey({ keyId, ratelimit: { ...ratelimit, limit: 999_999 } }, once),
    (answer) => answer.ratelimit?.limit === ratelimit.limit,
  ),
  keyChange(
    "given a lower strict limit",
    (keys, keyId, once) => keys.updateKey({ keyId, ratelimit: { ...ratelimit, limit: 999_998, async: false } }, once),
    (answer) => answer.ratelimit?.limit === ratelimit.limit,
  ),
  rootKeyChange("revoked", (rootKeys, rootKeyId, once) => rootKeys.revokeRootKey({ rootKeyId }, once)),
  rootKeyChange("ended", (rootKeys, rootKeyId, once) => rootKeys.updateRootKey({ rootKeyId, expires: 1 }, once)),
  rootKeyChange("given fewer permissions", (rootKeys, rootKeyId, once) =>
    rootKeys.updateRootKey({ rootKeyId, permissions: ["keys.update"] }, once),
  ),
];

/**
 * Uses what is changed on every front again and again, changes it on the first, and answers how long after the change was
 * answered each of them last answered as before it, by the time of that question; below 0: never. `then` is done right after
 * the change.
 */
async function lastOldMs(
  fronts: readonly Front[],
  { prepare }: WatchedChange,
  watchedMs: number,
  then: () => unknown,
): Promise<number[]> {
  const { change, ask } = await prepare(fronts);
  let untilMs = Number.POSITIVE_INFINITY;
  const known = fronts.map(() => Promise.withResolvers<void>());
  const heard = new Set<Front>();
  const watching = fronts.map(async (front, i) => {
    let lastMs = Number.NEGATIVE_INFINITY;
    while (performance.now() < untilMs) {
      // An answer that was on its way when the change was made is no old one.
      const askedMs = performance.now();
      const answer = await ask(front);
      if (answer === "old") {
        lastMs = askedMs;
        known[i]?.resolve();
      }
      if (answer === "new" && !heard.has(front)) {
        heard.add(front);
        if (heard.size === fronts.length) untilMs = Math.min(untilMs, performance.now() + goneMs);
      }
      await delay(askAgainMs);
    }
    return lastMs;
  });
  // All of them have it in memory, or this would show nothing.
  await Promise.all(known.map(({ promise }) => promise));
  await change();
  const changedMs = performance.now();
  untilMs = Math.min(untilMs, changedMs + watchedMs);
  then();
  return (await Promise.all(watching)).map((lastMs) => lastMs - changedMs);
}

/** Every change is in force on the first front, which is asked for it, when it is answered, and on all others in time. */
export async function expectInForce(
  baseUrls: readonly string[],
  withinMs: number,
  changes = watchedChanges,
  then: () => unknown = () => {},
): Promise<void> {
  const fronts = baseUrls.map((baseUrl) => ({ baseUrl, client: rawClient({ baseUrl, rootKey: testRootKey }) }));
  const found = await Promise.all(changes.map((change) => lastOldMs(fronts, change, withinMs + answerMs, then)));
  const lastMs = found.map((each, i) => [changes[i]?.name, ...each.map(Math.round)] as [string, ...number[]]);
  for (const [name, ...each] of lastMs) console.log(`${name}: last as before ${each.join(", ")} ms after the answer`);
  const isLate = ([_, here, ...others]: [string, ...number[]]) =>
    (here as number) >= 0 || Math.max(...others) >= withinMs;
  expect(lastMs.filter(isLate)).toEqual([]);
}
