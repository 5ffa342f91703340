import { expect } from "vitest";
import { costsOfOne } from "../../src/domain/costs.ts";
import type { Key } from "../../src/domain/key.ts";
import { limitsOfKey, limitsOfOwner } from "../../src/domain/limits.ts";
import type { Owner } from "../../src/domain/owner.ts";
import { standing } from "./fakes.ts";
import { away, both, type Case, counted, find, findFresh, peek, plain, rateLimit, take } from "./verify-key-cases.ts";

/* Keys whose owner has a record. */

const owned: Key = { ...plain, ownerId: "acme", hasOwnerRecord: true };
const ownedBoth = (): Key => ({ ...both(), ownerId: "acme", hasOwnerRecord: true });
const ownedCounted = (): Key => ({ ...counted(), ownerId: "acme", hasOwnerRecord: true });
const record: Owner = { id: "acme", enabled: true, apiIds: undefined, rateLimits: undefined, counter: undefined };
const withCounter = (): Owner => ({ ...record, counter: { remaining: 50 } });
const rateLimits = limitsOfOwner("acme", [{ name: "month", rule: { ...rateLimit, limit: 4 } }]);
const withLimit: Owner = { ...record, rateLimits };

const findOwner = "find owner acme";
const findOwnerFresh = "find owner fresh acme";
const takeOwner = "take of 4 for o/month/acme of api_1";
const state = (where: object) => [
  { name: "month", durationMs: rateLimit.durationMs, state: expect.objectContaining(where) },
];
const { taken, released, peeked } = standing;

export const ownerCases: Case[] = [
  {
    name: "a key whose owner has no record, or one that shares nothing, is decided by itself",
    found: [ownedCounted()],
    owners: [undefined],
    spends: [{ outcome: "spent", remaining: 4 }],
    verdict: { code: "VALID", remaining: 4, rateLimit: undefined },
    did: [find, findOwner, "spend for key_1"],
  },
  {
    name: "a key of a disabled owner is refused, takes no permit and consumes no use",
    found: [ownedBoth()],
    owners: [{ ...withCounter(), rateLimits, enabled: false }],
    verdict: {
      code: "DISABLED",
      remaining: 5,
      ownerRemaining: 50,
      rateLimit: peeked,
      ownerRateLimits: state(peeked),
      reason: { check: "enabled", of: "owner" },
    },
    did: [find, findOwner, peek, "peek at 4 for o/month/acme"],
    balance: 5,
  },
  {
    name: "a key without a counter spends its owner's",
    found: [owned],
    owners: [withCounter()],
    spends: [{ outcome: "spent", remaining: 49 }],
    verdict: { code: "VALID", remaining: undefined, ownerRemaining: 49, rateLimit: undefined },
    did: [find, findOwner, "spend for c/acme"],
  },
  {
    name: "a key with a counter spends its own and its owner's in one charge, at one cost",
    asked: { costs: { ...costsOfOne, counter: 3 } },
    found: [ownedCounted()],
    owners: [withCounter()],
    spends: [{ outcome: "spent", remaining: 2, sharedRemaining: 47 }],
    verdict: { code: "VALID", remaining: 2, ownerRemaining: 47, rateLimit: undefined },
    did: [find, findOwner, "spend for key_1,c/acme at 3"],
    balance: 2,
  },
  {
    name: "a cost of 0 touches no counter, and shows what was last known of both",
    asked: { costs: { ...costsOfOne, counter: 0 } },
    found: [ownedCounted()],
    owners: [withCounter()],
    verdict: { code: "VALID", remaining: 5, ownerRemaining: 50, rateLimit: undefined },
    did: [find, findOwner],
  },
  {
    name: "an owner's counter that is used up is the reason, and permits go back",
    found: [ownedBoth()],
    owners: [{ ...withCounter(), rateLimits }],
    permits: ["admitted", "admitted"],
    spends: [{ outcome: "exhausted", remaining: 5, sharedRemaining: 0, lacking: "shared" }],
    verdict: {
      code: "USAGE_EXCEEDED",
      remaining: 5,
      ownerRemaining: 0,
      rateLimit: released,
      ownerRateLimits: state(released),
      reason: { check: "counter", of: "owner" },
    },
    did: [find, findOwner, take, takeOwner, "spend for key_1,c/acme", "release", "release o/month/acme"],
  },
  {
    name: "limits of key and owner are taken together, and a cost by name goes to both",
    asked: { costs: { ...costsOfOne, named: [{ name: "month", cost: 2 }] } },
    found: [{ ...owned, rateLimits: limitsOfKey("key_1", [{ name: "month", rule: { ...rateLimit, limit: 3 } }]) }],
    owners: [withLimit],
    permits: ["admitted", "admitted"],
    verdict: {
      code: "VALID",
      remaining: undefined,
      rateLimit: undefined,
      rateLimits: state(taken),
      ownerRateLimits: state(taken),
    },
    did: [
      find,
      findOwner,
      "take of 3 for key_1/month of api_1 at 2",
      `${takeOwner} at 2`,
      "commit key_1/month",
      "commit o/month/acme",
    ],
  },
  {
    name: "an owner's limit that refuses is named, and the key's own gets back what was taken",
    found: [ownedBoth()],
    owners: [withLimit],
    permits: ["admitted", "limited"],
    verdict: {
      code: "RATE_LIMITED",
      remaining: 5,
      rateLimit: released,
      ownerRateLimits: state(taken),
      reason: { check: "limit", of: "owner", name: "month" },
    },
    did: [find, findOwner, take, takeOwner, "release"],
    balance: 5,
  },
  {
    name: "where the key's limit refuses too, it is named first",
    found: [ownedBoth()],
    owners: [withLimit],
    permits: ["limited", "limited"],
    verdict: {
      code: "RATE_LIMITED",
      remaining: 5,
      rateLimit: taken,
      ownerRateLimits: state(taken),
      reason: { check: "limit", of: "key", name: undefined },
    },
    did: [find, findOwner, take, takeOwner],
  },
  {
    name: "an owner whose counter is gone is looked up past the cache with its key, and decided again",
    found: [ownedCounted(), ownedCounted()],
    owners: [withCounter(), undefined],
    spends: [{ outcome: "missing" }, { outcome: "spent", remaining: 4 }],
    verdict: { code: "VALID", remaining: 4, rateLimit: undefined },
    did: [find, findOwner, "spend for key_1,c/acme", findFresh, findOwnerFresh, "spend for key_1"],
  },
  {
    name: "an owner whose limit is gone likewise",
    found: [owned, owned],
    owners: [withLimit, record],
    permits: ["missing"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find, findOwner, takeOwner, findFresh, findOwnerFresh],
  },
  {
    name: "an owner that cannot be looked up decides nothing: no permit is taken, and no use consumed",
    found: [ownedBoth()],
    owners: [away],
    verdict: away,
    did: [find, findOwner],
    balance: 5,
  },
  {
    name: "a caller of another API learns nothing of the owner",
    apiId: "api_2",
    found: [ownedBoth()],
    owners: [{ ...withCounter(), enabled: false }],
    verdict: { code: "FORBIDDEN" },
    did: [find, findOwner],
  },
];
