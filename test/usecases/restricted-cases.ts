import { parseIpAddress, toIpRanges } from "../../src/domain/ip-allow.ts";
import type { Key } from "../../src/domain/key.ts";
import { standing } from "./fakes.ts";
import { both, type Case, find, peek, plain } from "./verify-key-cases.ts";

/** A key for a few addresses, with a permission. */
const restricted: Key = { ...both(), permissions: ["docs.*"], ipAllow: toIpRanges(["10.0.0.0/8"]) };
const [inside, outside] = [parseIpAddress("::ffff:10.1.2.3"), parseIpAddress("11.1.2.3")];

/** Keys with permissions, and keys for some addresses. */
export const restrictedCases: Case[] = [
  {
    name: "a key that is used from another address is refused, takes no permit and consumes no use",
    asked: { ip: outside, permissions: "admin" },
    found: [{ ...restricted, counter: { remaining: 5 } }],
    verdict: { code: "FORBIDDEN", remaining: 5, rateLimit: standing.peeked, reason: { check: "ip", isGiven: true } },
    did: [find, peek],
    balance: 5,
  },
  {
    name: "a key that is limited to addresses is refused where none is told",
    asked: { permissions: "docs.read" },
    found: [{ ...plain, ipAllow: toIpRanges(["10.0.0.0/8"]) }],
    verdict: { code: "FORBIDDEN", remaining: undefined, rateLimit: undefined, reason: { check: "ip", isGiven: false } },
    did: [find],
  },
  {
    name: "a key that lacks a permission is refused, takes no permit and consumes no use",
    asked: { ip: inside, permissions: { operator: "AND", operands: ["docs.read", "admin"] } },
    found: [{ ...restricted, counter: { remaining: 5 } }],
    verdict: {
      code: "INSUFFICIENT_PERMISSIONS",
      remaining: 5,
      rateLimit: standing.peeked,
      reason: { check: "permissions", missing: "admin" },
    },
    did: [find, peek],
    balance: 5,
  },
  {
    name: "a key without permissions lacks those that are asked for",
    asked: { permissions: "docs.read" },
    found: [plain],
    verdict: {
      code: "INSUFFICIENT_PERMISSIONS",
      remaining: undefined,
      rateLimit: undefined,
      reason: { check: "permissions", missing: "docs.read" },
    },
    did: [find],
  },
  {
    name: "a key with permissions and addresses is valid where nothing is asked of them, and from one of the addresses",
    asked: { ip: inside },
    found: [{ ...plain, permissions: ["docs.*"], ipAllow: toIpRanges(["10.0.0.0/8"]) }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "a key is valid with the permission that is asked for, from anywhere if it has no addresses",
    asked: { ip: outside, permissions: "docs.read" },
    found: [{ ...plain, permissions: ["docs.*"] }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "another API learns neither of addresses nor of permissions",
    apiId: "api_2",
    asked: { ip: outside, permissions: "admin" },
    found: [restricted],
    verdict: { code: "FORBIDDEN" },
    did: [find],
  },
];
