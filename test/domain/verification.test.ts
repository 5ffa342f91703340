import { describe, expect, it } from "vitest";
import type { Key } from "../../src/domain/key.ts";
import { decideSpend, planVerification } from "../../src/domain/verification.ts";

const nowMs = Date.UTC(2026, 0, 15);
const key: Key = {
  id: "key_1",
  apiId: "api_1",
  start: "live_abcd",
  ownerId: "owner",
  name: "name",
  meta: { plan: "pro" },
  enabled: true,
  expiresAtMs: undefined,
  rateLimit: undefined,
  counter: undefined,
};
const counted: Key = { ...key, counter: { remaining: 5 } };
const foreign = { apiId: "api_2", nowMs };

describe("planVerification", () => {
  it("answers NOT_FOUND and nothing more when there is no such key", () => {
    expect(planVerification(undefined, { apiId: "api_1", nowMs })).toEqual(answer({ code: "NOT_FOUND" }));
  });

  it("tells nothing of a key of another API but that it is", () => {
    expect(planVerification(counted, foreign)).toEqual(answer({ code: "FORBIDDEN" }));
  });

  it.each(["api_1", undefined])("answers VALID for an uncounted key asked for under API %j", (apiId) => {
    expect(planVerification(key, { apiId, nowMs })).toEqual(answer({ code: "VALID", key, remaining: undefined }));
  });

  it("leaves a counted key to the ledger", () => {
    expect(planVerification(counted, { apiId: "api_1", nowMs })).toEqual({ next: "spend", key: counted });
  });

  it("leaves a key seen at 0 to the ledger too: it may have been refilled since", () => {
    const empty = { ...key, counter: { remaining: 0 } };
    expect(planVerification(empty, { apiId: undefined, nowMs })).toEqual({ next: "spend", key: empty });
  });

  it.each([key, counted])("answers DISABLED with the key and the balance seen, and spends nothing", (each) => {
    const disabled = { ...each, enabled: false };
    expect(planVerification(disabled, { apiId: undefined, nowMs })).toEqual(
      answer({ code: "DISABLED", key: disabled, remaining: each.counter?.remaining }),
    );
  });

  it.each([key, counted])("answers EXPIRED with the key and the balance seen, and spends nothing", (each) => {
    const expired = { ...each, expiresAtMs: nowMs - 1 };
    expect(planVerification(expired, { apiId: undefined, nowMs })).toEqual(
      answer({ code: "EXPIRED", key: expired, remaining: each.counter?.remaining }),
    );
  });

  it.each([
    [-1, "EXPIRED"],
    [0, "EXPIRED"],
    [1, "VALID"],
  ])("judges a key that expires %i ms from now as %s", (inMs, code) => {
    const plan = planVerification({ ...key, expiresAtMs: nowMs + inMs }, { apiId: undefined, nowMs });
    expect(plan).toMatchObject(answer({ code }));
  });

  const wrongInEveryWay = { ...counted, enabled: false, expiresAtMs: nowMs - 1 };
  it.each([
    ["FORBIDDEN before DISABLED and EXPIRED", wrongInEveryWay, foreign, "FORBIDDEN"],
    ["FORBIDDEN before EXPIRED", { ...wrongInEveryWay, enabled: true }, foreign, "FORBIDDEN"],
    ["DISABLED before EXPIRED", wrongInEveryWay, { apiId: "api_1", nowMs }, "DISABLED"],
    ["EXPIRED before its counter", { ...wrongInEveryWay, enabled: true }, { apiId: "api_1", nowMs }, "EXPIRED"],
  ])("says %s", (_, each, request, code) => {
    expect(planVerification(each, request)).toMatchObject(answer({ code }));
  });
});

describe("decideSpend", () => {
  it.each([
    [
      { outcome: "spent", remaining: 4 },
      { code: "VALID", key: counted, remaining: 4 },
    ],
    [
      { outcome: "spent", remaining: 0 },
      { code: "VALID", key: counted, remaining: 0 },
    ],
    [
      { outcome: "exhausted", remaining: 0 },
      { code: "USAGE_EXCEEDED", key: counted, remaining: 0 },
    ],
    [{ outcome: "missing" }, { code: "NOT_FOUND" }],
  ] as const)("turns %j into its verdict, with the ledger's balance rather than the one seen", (spend, verdict) => {
    expect(decideSpend(counted, spend)).toEqual(verdict);
  });
});

function answer(verdict: object): object {
  return { next: "answer", verdict };
}
