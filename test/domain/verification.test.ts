import { describe, expect, it } from "vitest";
import { costsOfOne } from "../../src/domain/costs.ts";
import { parseIpAddress, toIpRanges } from "../../src/domain/ip-allow.ts";
import type { Key } from "../../src/domain/key.ts";
import type { PlannedRequest } from "../../src/domain/key-checks.ts";
import type { Owner } from "../../src/domain/owner.ts";
import { countersOf, noteSpend, planVerification, verdictOn } from "../../src/domain/verification.ts";

const nowMs = Date.UTC(2026, 0, 15);
const key: Key = {
  id: "key_1",
  apiId: "api_1",
  ownerId: "owner",
  hasOwnerRecord: false,
  name: "name",
  environment: undefined,
  meta: { plan: "pro" },
  enabled: true,
  expiresAtMs: undefined,
  rateLimit: undefined,
  rateLimits: undefined,
  costMax: undefined,
  permissions: undefined,
  ipAllow: undefined,
  counter: undefined,
  secretExpiresAtMs: undefined,
};
const counted: Key = { ...key, counter: { remaining: 5 } };
const foreign = { apiId: "api_2" };

const rateLimit = { limit: 10, remaining: 3, resetMs: nowMs + 500 };
const limits = { rateLimit, rateLimits: undefined, ownerRateLimits: undefined };
const owner: Owner = { id: "owner", enabled: true, apiIds: undefined, rateLimits: undefined, counter: undefined };

describe("planVerification", () => {
  it("answers NOT_FOUND and nothing more when there is no such key", () => {
    expect(planVerification(undefined, undefined, { apiId: "api_1" }, nowMs)).toEqual({
      next: "answer",
      verdict: { code: "NOT_FOUND" },
    });
  });

  it("answers a secret that has ended like one that never was, and not a millisecond before", () => {
    const unknown = planVerification(undefined, undefined, foreign, nowMs);
    for (const of of [key, { ...counted, enabled: false }, { ...key, expiresAtMs: nowMs }]) {
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, undefined, foreign, nowMs)).toEqual(unknown);
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, undefined, { apiId: undefined }, nowMs)).toEqual(
        unknown,
      );
    }
    const living = { ...key, secretExpiresAtMs: nowMs + 1 };
    expect(planVerification(living, undefined, { apiId: undefined }, nowMs)).toEqual({
      next: "count",
      key: living,
      costs: costsOfOne,
    });
  });

  it("reveals nothing about a key of another API except that it exists", () => {
    expect(planVerification(counted, undefined, foreign, nowMs)).toEqual({
      next: "answer",
      verdict: { code: "FORBIDDEN", reason: { check: "api" } },
    });
  });

  it.each(["api_1", undefined])("leaves the rest to the counters, for a key asked for under API %j", (apiId) => {
    expect(planVerification(key, undefined, { apiId }, nowMs)).toEqual({ next: "count", key, costs: costsOfOne });
  });

  it("leaves a key seen at 0 to the ledger too: it may have been refilled since", () => {
    const empty = { ...key, counter: { remaining: 0 } };
    expect(planVerification(empty, undefined, { apiId: undefined }, nowMs)).toEqual({
      next: "count",
      key: empty,
      costs: costsOfOne,
    });
  });

  it.each([key, counted])("refuses a key that is not enabled as DISABLED, and counts nothing", (each) => {
    const disabled = { ...each, enabled: false };
    const plan = planVerification(disabled, undefined, { apiId: undefined }, nowMs);
    expect(plan).toEqual({ next: "refuse", reason: { check: "enabled", of: "key" }, key: disabled });
  });

  it.each([
    [-1, { next: "refuse", reason: { check: "expiry" } }],
    [0, { next: "refuse", reason: { check: "expiry" } }],
    [1, { next: "count", costs: costsOfOne }],
  ])("of a key that expires %i ms from now says %j", (inMs, plan) => {
    const expiring = { ...key, expiresAtMs: nowMs + inMs };
    expect(planVerification(expiring, undefined, { apiId: undefined }, nowMs)).toEqual({ ...plan, key: expiring });
  });

  const right = { ...counted, permissions: ["docs.read"], ipAllow: toIpRanges(["10.0.0.0/8"]) };
  const rightly = { apiId: "api_1", ip: parseIpAddress("10.0.0.1"), permissions: "docs.read" };
  /** In the order in which they are found. */
  const faults: readonly {
    readonly reason: object;
    readonly key?: Partial<Key>;
    readonly owner?: Partial<Owner>;
    readonly request?: Partial<PlannedRequest>;
  }[] = [
    { reason: { check: "api" }, request: { apiId: "api_2" } },
    { reason: { check: "enabled", of: "key" }, key: { enabled: false } },
    { reason: { check: "expiry" }, key: { expiresAtMs: nowMs - 1 } },
    { reason: { check: "enabled", of: "owner" }, owner: { enabled: false } },
    { reason: { check: "ip" }, request: { ip: parseIpAddress("11.0.0.1") } },
    { reason: { check: "permissions" }, request: { permissions: "docs.write" } },
  ];
  it("finds the first of any number of faults, and counts where there are none", () => {
    for (let chosen = 0; chosen < 2 ** faults.length; chosen++) {
      const found = faults.filter((_, index) => chosen & (1 << index));
      const wrong: Key = Object.assign({}, right, ...found.map((fault) => fault.key));
      const whose: Owner = Object.assign({}, owner, ...found.map((fault) => fault.owner));
      const wrongly: PlannedRequest = Object.assign({}, rightly, ...found.map((fault) => fault.request));
      const plan = planVerification(wrong, whose, wrongly, nowMs);
      const reason = plan.next === "refuse" ? plan.reason : plan.next === "answer" ? plan.verdict.reason : undefined;
      if (found[0] === undefined) expect(reason).toBeUndefined();
      else expect(reason).toMatchObject(found[0].reason);
      expect(plan.next === "count").toBe(found.length === 0);
    }
  });
});

describe("the counters of a verification", () => {
  const shared: Owner = { ...owner, counter: { remaining: 50 } };

  it.each([
    ["neither", { key, owner }, undefined],
    ["no owner", { key, owner: undefined }, undefined],
    ["the key", { key: counted, owner }, ["key_1"]],
    ["the owner", { key, owner: shared }, ["c/owner"]],
    ["both", { key: counted, owner: shared }, ["key_1", "c/owner"]],
  ] as const)("are those that %s has, the key's own first", (_, holders, counters) => {
    expect(countersOf(holders)).toEqual(counters);
  });

  const ofKey = { check: "counter", of: "key" } as const;
  const ofOwner = { check: "counter", of: "owner" } as const;
  it.each([
    ["key", { outcome: "spent", remaining: 4 }, undefined, { remaining: 4 }],
    ["key", { outcome: "exhausted", remaining: 0 }, ofKey, { remaining: 0 }],
    ["owner", { outcome: "spent", remaining: 49 }, undefined, { ownerRemaining: 49 }],
    ["owner", { outcome: "exhausted", remaining: 0 }, ofOwner, { ownerRemaining: 0 }],
    ["both", { outcome: "spent", remaining: 4, sharedRemaining: 49 }, undefined, { remaining: 4, ownerRemaining: 49 }],
    [
      "both",
      { outcome: "exhausted", remaining: 0, sharedRemaining: 9, lacking: "own" },
      ofKey,
      { remaining: 0, ownerRemaining: 9 },
    ],
    [
      "both",
      { outcome: "exhausted", remaining: 9, sharedRemaining: 0, lacking: "shared" },
      ofOwner,
      { remaining: 9, ownerRemaining: 0 },
    ],
  ] as const)("of %s: %j is the reason %j, with the ledger's balances", (whose, spend, reason, balances) => {
    const holders = {
      key: whose === "owner" ? key : { ...key, counter: { remaining: 5 } },
      owner: whose === "key" ? owner : { ...owner, counter: { remaining: 50 } },
    };
    expect(noteSpend(holders, spend, nowMs)).toEqual(reason);
    const verdict = { ...holders, remaining: undefined, ownerRemaining: undefined, ...balances, limits, reason };
    const code = reason === undefined ? "VALID" : "USAGE_EXCEEDED";
    expect(verdictOn(holders, reason, limits)).toEqual({ code, ...verdict });
  });

  it.each([
    ["own", "daily", "monthly", { of: "key", nextRefillMs: Date.parse("2026-02-28T00:00:00.000Z") }],
    ["shared", "daily", "monthly", { of: "owner", nextRefillMs: Date.parse("2026-03-01T00:00:00.000Z") }],
    ["shared", "daily", undefined, { of: "owner" }],
  ] as const)("the %s one that is used up says when it is refilled next", (lacking, ofKey, ofOwner, reason) => {
    const holders = {
      key: { ...key, counter: { remaining: 5, refillInterval: ofKey } },
      owner: { ...owner, counter: { remaining: 50, refillInterval: ofOwner } },
    };
    const spend = { outcome: "exhausted", remaining: 5, sharedRemaining: 5, lacking } as const;
    const at = Date.parse("2026-02-27T12:00:00.000Z");
    expect(noteSpend(holders, spend, at)).toEqual({ check: "counter", ...reason });
  });
});
