import type { LatchkeyClient } from "../../src/sdk/index.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import { surely } from "./create-surely.ts";

/** Whose limit it is: a key's only one, one of several that a key has, an owner's, or nobody's. */
export type HolderKind = "key" | "key with several" | "owner" | "nobody";
export const holderKinds: readonly HolderKind[] = ["key", "key with several", "owner", "nobody"];

/** Half of them 1: only refusals of those show that a window is full. */
export const mixedCosts = [1, 1, 1, 1, 1, 1, 0, 2, 3, 5, 7, 20];

export interface LimitRule {
  readonly limit: number;
  readonly durationMs: number;
  readonly isStrict: boolean;
  readonly of: HolderKind;
}

/** Where an answer says that the limit stands. */
export interface Placed {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** How to ask for something that has a limit. */
export interface Limited {
  readonly method: "keys.verifyKey" | "ratelimits.limit";
  body(cost: number): object;
  /** What the answer says. Not placed: it says nothing of the limit. */
  read(answer: LimitAnswer): { readonly code: string; readonly placed: Placed | undefined };
  /** The secret of its key, if it has one. */
  readonly key?: string;
}

export type LimitAnswer = Partial<
  Awaited<ReturnType<LatchkeyClient["keys"]["verifyKey"]>> & Awaited<ReturnType<LatchkeyClient["ratelimits"]["limit"]>>
>;

const name = "burst";
/** Asked together with the one that is tested, and never reached. A local limit waits for nothing, so it gets no strict one. */
const othersOf = (isStrict: boolean) => [
  { name: "month", limit: 1_000_000, duration: 2_592_000_000, async: !isStrict },
  { name: "local", limit: 1_000_000, duration: 60_000 },
];

/** A key that is there already, with one limit. */
export function limitedKey(key: string): Limited {
  return verifying(
    (cost) => ({ key, ...(cost !== 1 && { ratelimit: { cost } }) }),
    ({ ratelimit }) => ratelimit,
    key,
  );
}

/** Makes what a rule is for. The id is its own on this service. */
export async function makeLimited(client: LatchkeyClient, rule: LimitRule, id: string): Promise<Limited> {
  const { of, limit, durationMs: duration, isStrict } = rule;
  const given = { limit, duration, async: !isStrict };
  const ratelimits = [{ name, ...given }, ...othersOf(isStrict)];
  const createKey = async (fields: object) =>
    (await surely((repeated) => client.keys.createKey({ apiId: "api", ...fields }, repeated))).key;
  switch (of) {
    case "key":
      return limitedKey(await createKey({ ratelimit: given }));
    case "key with several": {
      const key = await createKey({ ratelimits });
      return verifying(
        (cost) => ({ key, ...namedCost(cost) }),
        (answer) => answer.ratelimits?.find(isTested),
        key,
      );
    }
    case "owner": {
      const ownerId = `owner ${id}`;
      await surely((repeated) => client.owners.createOwner({ ownerId, ratelimits }, repeated));
      const keys = [await createKey({ ownerId }), await createKey({ ownerId })];
      const random = new SeededRandom(1);
      const body = (cost: number) => ({ key: random.pick(keys), ...namedCost(cost) });
      return verifying(body, ({ owner }) => owner?.ratelimits?.find(isTested));
    }
    case "nobody":
      return {
        method: "ratelimits.limit",
        body: (cost) => ({ namespace: "tested", identifier: id, ...given, ...(cost !== 1 && { cost }) }),
        read: (answer) => ({ code: answer.success ? "VALID" : "RATE_LIMITED", placed: placedAt(answer as State) }),
      };
  }
}

type State = { limit?: number; remaining?: number; reset?: number };

function verifying(body: Limited["body"], stateOf: (answer: LimitAnswer) => State | undefined, key?: string): Limited {
  const read = (answer: LimitAnswer) => ({ code: answer.code ?? "", placed: placedAt(stateOf(answer)) });
  return { method: "keys.verifyKey", body, read, ...(key !== undefined && { key }) };
}

function isTested(state: { name?: string }): boolean {
  return state.name === name;
}

function namedCost(cost: number): object {
  return cost === 1 ? {} : { ratelimits: [{ name, cost }] };
}

function placedAt(state: State | undefined): Placed | undefined {
  return state && { limit: state.limit ?? 0, remaining: state.remaining ?? 0, resetMs: state.reset ?? 0 };
}
