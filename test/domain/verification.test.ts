import { describe, expect, it } from "vitest";
import { costsOfOne } from "../../src/domain/costs.ts";
import { parseIpAddress, toIpRanges } from "../../src/domain/ip-allow.ts";
import type { Key } from "../../src/domain/key.ts";
import { decideSpend, type PlannedRequest, planVerification } from "../../src/domain/verification.ts";

const nowMs = Date.UTC(2026, 0, 15);
const key: Key = {
  id: "key_1",
  apiId: "api_1",
  ownerId: "owner",
  name: "name",
  meta: { plan: "pro" },
  enabled: true,
  expiresAtMs: undefined,
  rateLimit: undefined,
  limits: undefined,
  costMax: undefined,
  permissions: undefined,
  ipRanges: undefined,
  counter: undefined,
  secretExpiresAtMs: undefined,
};
const counted: Key = { ...key, counter: { remaining: 5 } };
const foreign = { apiId: "api_2" };

const rateLimit = { limit: 10, remaining: 3, resetMs: nowMs + 500 };
const limits = { rateLimit, rateLimits: undefined };

describe("planVerification", () => {
  it("answers NOT_FOUND and nothing more when there is no such key", () => {
    expect(planVerification(undefined, { apiId: "api_1" }, nowMs)).toEqual({
      next: "answer",
      verdict: { code: "NOT_FOUND" },
    });
  });

  it("answers a secret that has ended like one that never was, and not a millisecond before", () => {
    const unknown = planVerification(undefined, foreign, nowMs);
    for (const of of [key, { ...counted, enabled: false }, { ...key, expiresAtMs: nowMs }]) {
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, foreign, nowMs)).toEqual(unknown);
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, { apiId: undefined }, nowMs)).toEqual(unknown);
    }
    const living = { ...key, secretExpiresAtMs: nowMs + 1 };
    expect(planVerification(living, { apiId: undefined }, nowMs)).toEqual({
      next: "count",
      key: living,
      costs: costsOfOne,
    });
  });

  it("reveals nothing about a key of another API except that it exists", () => {
    expect(planVerification(counted, foreign, nowMs)).toEqual({
      next: "answer",
      verdict: { code: "FORBIDDEN", reason: { check: "api" } },
    });
  });

  it.each(["api_1", undefined])("leaves the rest to the counters, for a key asked for under API %j", (apiId) => {
    expect(planVerification(key, { apiId }, nowMs)).toEqual({ next: "count", key, costs: costsOfOne });
  });

  it("leaves a key seen at 0 to the ledger too: it may have been refilled since", () => {
    const empty = { ...key, counter: { remaining: 0 } };
    expect(planVerification(empty, { apiId: undefined }, nowMs)).toEqual({
      next: "count",
      key: empty,
      costs: costsOfOne,
    });
  });

  it.each([key, counted])("refuses a key that is not enabled as DISABLED, and counts nothing", (each) => {
    const disabled = { ...each, enabled: false };
    const plan = planVerification(disabled, { apiId: undefined }, nowMs);
    expect(plan).toEqual({ next: "refuse", reason: { check: "enabled", of: "key" }, key: disabled });
  });

  it.each([
    [-1, { next: "refuse", reason: { check: "expiry" } }],
    [0, { next: "refuse", reason: { check: "expiry" } }],
    [1, { next: "count", costs: costsOfOne }],
  ])("of a key that expires %i ms from now says %j", (inMs, plan) => {
    const expiring = { ...key, expiresAtMs: nowMs + inMs };
    expect(planVerification(expiring, { apiId: undefined }, nowMs)).toEqual({ ...plan, key: expiring });
  });

  const right = { ...counted, permissions: ["docs.read"], ipRanges: toIpRanges(["10.0.0.0/8"]) };
  const rightly = { apiId: "api_1", ip: parseIpAddress("10.0.0.1"), permissions: "docs.read" };
  /** In the order in which they are found. */
  const faults: readonly [check: string, ofKey: Partial<Key>, ofRequest: Partial<PlannedRequest>][] = [
    ["api", {}, { apiId: "api_2" }],
    ["enabled", { enabled: false }, {}],
    ["expiry", { expiresAtMs: nowMs - 1 }, {}],
    ["ip", {}, { ip: parseIpAddress("11.0.0.1") }],
    ["permissions", {}, { permissions: "docs.write" }],
  ];
  it("finds the first of any number of faults, and counts where there are none", () => {
    for (let chosen = 0; chosen < 2 ** faults.length; chosen++) {
      const found = faults.filter((_, index) => chosen & (1 << index));
      const wrong = Object.assign({}, right, ...found.map(([, ofKey]) => ofKey)) as Key;
      const wrongly = Object.assign({}, rightly, ...found.map(([, , ofRequest]) => ofRequest)) as PlannedRequest;
      const plan = planVerification(wrong, wrongly, nowMs);
      const reason = plan.next === "refuse" ? plan.reason : plan.next === "answer" ? plan.verdict.reason : undefined;
      expect(reason?.check).toBe(found[0]?.[0]);
      expect(plan.next === "count").toBe(found.length === 0);
    }
  });
});

describe("decideSpend", () => {
  it.each([
    [
      { outcome: "spent", remaining: 4 },
      { code: "VALID", key: counted, remaining: 4, limits, reason: undefined },
    ],
    [
      { outcome: "spent", remaining: 0 },
      { code: "VALID", key: counted, remaining: 0, limits, reason: undefined },
    ],
    [
      { outcome: "exhausted", remaining: 0 },
      { code: "USAGE_EXCEEDED", key: counted, remaining: 0, limits, reason: { check: "counter", of: "key" } },
    ],
  ] as const)("turns %j into its verdict, with the ledger's balance rather than the one seen", (spend, verdict) => {
    expect(decideSpend(counted, spend, limits)).toEqual(verdict);
  });
});
