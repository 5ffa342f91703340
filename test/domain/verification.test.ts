import { describe, expect, it } from "vitest";
import type { Key } from "../../src/domain/key.ts";
import { decideSpend, planVerification } from "../../src/domain/verification.ts";

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
  counter: undefined,
  secretExpiresAtMs: undefined,
};
const counted: Key = { ...key, counter: { remaining: 5 } };
const foreign = { apiId: "api_2" };

const rateLimit = { limit: 10, remaining: 3, resetMs: nowMs + 500 };

describe("planVerification", () => {
  it("answers NOT_FOUND and nothing more when there is no such key", () => {
    expect(planVerification(undefined, { apiId: "api_1" }, nowMs)).toEqual({ next: "answer", code: "NOT_FOUND" });
  });

  it("answers a secret that has ended like one that never was, and not a millisecond before", () => {
    const unknown = planVerification(undefined, foreign, nowMs);
    for (const of of [key, { ...counted, enabled: false }, { ...key, expiresAtMs: nowMs }]) {
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, foreign, nowMs)).toEqual(unknown);
      expect(planVerification({ ...of, secretExpiresAtMs: nowMs }, { apiId: undefined }, nowMs)).toEqual(unknown);
    }
    const living = { ...key, secretExpiresAtMs: nowMs + 1 };
    expect(planVerification(living, { apiId: undefined }, nowMs)).toEqual({ next: "count", key: living });
  });

  it("reveals nothing about a key of another API except that it exists", () => {
    expect(planVerification(counted, foreign, nowMs)).toEqual({ next: "answer", code: "FORBIDDEN" });
  });

  it.each(["api_1", undefined])("leaves the rest to the counters, for a key asked for under API %j", (apiId) => {
    expect(planVerification(key, { apiId }, nowMs)).toEqual({ next: "count", key });
  });

  it("leaves a key seen at 0 to the ledger too: it may have been refilled since", () => {
    const empty = { ...key, counter: { remaining: 0 } };
    expect(planVerification(empty, { apiId: undefined }, nowMs)).toEqual({ next: "count", key: empty });
  });

  it.each([key, counted])("refuses a key that is not enabled as DISABLED, and counts nothing", (each) => {
    const disabled = { ...each, enabled: false };
    const plan = planVerification(disabled, { apiId: undefined }, nowMs);
    expect(plan).toEqual({ next: "refuse", code: "DISABLED", key: disabled });
  });

  it.each([
    [-1, { next: "refuse", code: "EXPIRED" }],
    [0, { next: "refuse", code: "EXPIRED" }],
    [1, { next: "count" }],
  ])("of a key that expires %i ms from now says %j", (inMs, plan) => {
    const expiring = { ...key, expiresAtMs: nowMs + inMs };
    expect(planVerification(expiring, { apiId: undefined }, nowMs)).toEqual({ ...plan, key: expiring });
  });

  const wrongInEveryWay = { ...counted, enabled: false, expiresAtMs: nowMs - 1 };
  it.each([
    ["FORBIDDEN before DISABLED and EXPIRED", wrongInEveryWay, foreign, "FORBIDDEN"],
    ["FORBIDDEN before EXPIRED", { ...wrongInEveryWay, enabled: true }, foreign, "FORBIDDEN"],
    ["DISABLED before EXPIRED", wrongInEveryWay, { apiId: "api_1" }, "DISABLED"],
    ["EXPIRED before its counter", { ...wrongInEveryWay, enabled: true }, { apiId: "api_1" }, "EXPIRED"],
  ])("says %s", (_, each, request, code) => {
    expect(planVerification(each, request, nowMs)).toMatchObject({ code });
  });
});

describe("decideSpend", () => {
  it.each([
    [
      { outcome: "spent", remaining: 4 },
      { code: "VALID", key: counted, remaining: 4, rateLimit },
    ],
    [
      { outcome: "spent", remaining: 0 },
      { code: "VALID", key: counted, remaining: 0, rateLimit },
    ],
    [
      { outcome: "exhausted", remaining: 0 },
      { code: "USAGE_EXCEEDED", key: counted, remaining: 0, rateLimit },
    ],
  ] as const)("turns %j into its verdict, with the ledger's balance rather than the one seen", (spend, verdict) => {
    expect(decideSpend(counted, spend, rateLimit)).toEqual(verdict);
  });
});
