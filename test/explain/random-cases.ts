import { sha256 } from "../../src/ambient/crypto.ts";
import type { Costs } from "../../src/domain/costs.ts";
import type { ChangesOf } from "../../src/domain/fields.ts";
import { type IpAddress, parseIpAddress } from "../../src/domain/ip-allow.ts";
import type { KeyFieldChanges, NewKey } from "../../src/domain/key.ts";
import type { PlannedRequest } from "../../src/domain/key-checks.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import type { NamedRateLimit } from "../../src/domain/limits.ts";
import type { NewOwner } from "../../src/domain/owner.ts";
import { parsePermissionQuery } from "../../src/domain/permission-query.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { OwnerFields } from "../../src/domain/resources.ts";
import type { RefillRule } from "../../src/domain/usage.ts";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { plainKey } from "../support/plain-key.ts";

/* Random keys, and random verifications of them. Small numbers, so that limits and counters are met. */

const names = ["minute", "month", "day"];
const address = (text: string) => parseIpAddress(text) as IpAddress;
const addresses = [undefined, address("10.1.2.3"), address("192.0.2.1"), address("::ffff:10.0.0.9")];
const queries = [
  "docs.read",
  "docs.read AND docs.write",
  "admin OR docs.write",
  "docs.read AND (admin OR billing)",
].map(parsePermissionQuery);

export function randomKey(random: SeededRandom, id: string, nowMs: number): { key: NewKey; secret: string } {
  const { key: secret, start } = secretOf(id);
  const maybe = <Value>(probability: number, value: () => Value) => (random.chance(probability) ? value() : undefined);
  const remaining = maybe(0.5, () => random.integer(0, 9));
  const key: NewKey = {
    ...plainKey,
    id,
    apiId: "api",
    start,
    ownerId: maybe(0.5, () => ownerIdOf(id)),
    enabled: random.chance(0.95),
    expiresAtMs: maybe(0.1, () => nowMs + random.pick([-1000, 1, 2 * 86_400_000])),
    rateLimit: maybe(0.6, () => randomLimit(random)),
    rateLimits: maybe(0.4, () => randomLimits(random)),
    costMax: maybe(0.1, () => 5),
    permissions: maybe(0.5, () => random.pick([["docs.read"], ["docs.*"], ["admin", "docs.read"], ["*"]])),
    ipAllow: maybe(0.15, () => random.pick([["10.0.0.0/8"], ["192.0.2.1", "2001:db8::/32"]])),
    createdAtMs: nowMs,
    secretDigest: sha256(secret),
    remaining,
    refill: remaining === undefined ? undefined : maybe(0.5, () => randomRefill(random)),
  };
  return { key, secret };
}

/** Each key has an owner of its own, so that nobody else asks for what is shared. */
function ownerIdOf(keyId: string): string {
  return `owner of ${keyId}`;
}

/** Undefined: the key's owner has no record. */
export function randomOwner(random: SeededRandom, keyId: string): NewOwner | undefined {
  if (random.chance(0.2)) return undefined;
  const remaining = random.chance(0.6) ? random.integer(0, 9) : undefined;
  return {
    id: ownerIdOf(keyId),
    enabled: random.chance(0.95),
    apiIds: random.pick([undefined, undefined, ["api"], ["api", "another"], ["another"]]),
    meta: {},
    rateLimits: random.chance(0.5) ? randomLimits(random) : undefined,
    remaining,
    refill: remaining === undefined || random.chance(0.5) ? undefined : randomRefill(random),
  };
}

/** What is changed of it while its windows are open. */
export function randomOwnerChanges(random: SeededRandom): ChangesOf<OwnerFields> {
  return random.pick<() => ChangesOf<OwnerFields>>([
    () => ({ enabled: random.chance(0.5) }),
    () => ({ apiIds: random.pick([null, ["another"]]) }),
    () => ({ rateLimits: random.chance(0.3) ? null : randomLimits(random) }),
  ])();
}

function randomLimits(random: SeededRandom): readonly NamedRateLimit[] {
  return names.slice(random.integer(0, 2)).map((name) => ({ name, rule: randomLimit(random) }));
}

function randomRefill(random: SeededRandom): RefillRule {
  return { interval: "daily", amount: random.integer(1, 9), carryOver: random.chance(0.5) };
}

/** The same for the same text. */
export function secretOf(text: string): { readonly key: string; readonly start: string } {
  return formatKey(undefined, Buffer.from(sha256(text)).subarray(0, 24));
}

function randomLimit(random: SeededRandom): RateLimit {
  return { mode: random.chance(0.7) ? "strict" : "local", limit: random.integer(1, 12), durationMs: 3_600_000 };
}

export function randomRequest(random: SeededRandom): PlannedRequest {
  return {
    apiId: random.pick([undefined, "api", "api", "api", "api", "api", random.chance(0.3) ? "another" : "api"]),
    permissions: random.chance(0.2) ? random.pick(queries) : undefined,
    ip: random.chance(0.6) ? random.pick(addresses) : undefined,
    costs: random.chance(0.6) ? randomCosts(random) : undefined,
  };
}

/** A verification that makes use of the key, if it can be used at all. */
export function randomUse(random: SeededRandom): PlannedRequest {
  return { apiId: "api", ip: address("10.1.2.3"), costs: random.chance(0.5) ? randomCosts(random, 4) : undefined };
}

function randomCosts(random: SeededRandom, costMax = 9): Costs {
  const cost = () => random.integer(0, random.chance(0.5) ? 2 : costMax);
  return {
    counter: cost(),
    unnamed: cost(),
    named: names.slice(random.integer(0, 3)).map((name) => ({ name, cost: cost() })),
  };
}

/** What is changed while its windows are open. */
export function randomChanges(random: SeededRandom): KeyFieldChanges {
  return random.pick<() => KeyFieldChanges>([
    () => ({ enabled: random.chance(0.5) }),
    () => ({ rateLimit: random.chance(0.3) ? null : randomLimit(random) }),
    () => ({ rateLimits: random.chance(0.3) ? null : [{ name: "minute", rule: randomLimit(random) }] }),
    () => ({ costMax: random.pick([null, 3]) }),
  ])();
}
