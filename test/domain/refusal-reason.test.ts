import { describe, expect, it } from "vitest";
import {
  codeOfRefusal,
  phraseCheck,
  phraseRefusal,
  type RefusalReason,
  type VerificationCheck,
} from "../../src/domain/refusal-reason.ts";

describe("the reason of a refusal", () => {
  it.each<[reason: RefusalReason, code: string, words: string]>([
    [{ check: "api" }, "FORBIDDEN", "the key belongs to another API"],
    [{ check: "enabled", of: "key" }, "DISABLED", "the key is disabled"],
    [{ check: "enabled", of: "owner" }, "DISABLED", "the key's owner is disabled"],
    [{ check: "expiry" }, "EXPIRED", "the key has expired"],
    [{ check: "ip", isGiven: true }, "FORBIDDEN", "the key cannot be used from this address"],
    [{ check: "ip", isGiven: false }, "FORBIDDEN", "the key can be used from some addresses only, and none was told"],
    [{ check: "permissions", missing: "a OR b" }, "INSUFFICIENT_PERMISSIONS", "the key lacks a OR b"],
    [{ check: "limit", of: "key" }, "RATE_LIMITED", "the limit of the key has not enough left"],
    [
      { check: "limit", of: "owner", name: "month" },
      "RATE_LIMITED",
      "the limit month of the key's owner has not enough left",
    ],
    [{ check: "counter", of: "key" }, "USAGE_EXCEEDED", "the counter of the key has not enough left"],
    [{ check: "counter", of: "owner" }, "USAGE_EXCEEDED", "the counter of the key's owner has not enough left"],
  ])("%j is %s: %s", (reason, code, words) => {
    expect(codeOfRefusal(reason)).toBe(code);
    expect(phraseRefusal(reason)).toBe(words);
  });
});

describe("what a check has found", () => {
  const passed = { refusal: undefined };
  const state = { limit: 10, remaining: 3, resetMs: 1 };
  it.each<[check: VerificationCheck, words: string]>([
    [{ check: "api", isNeeded: true, ...passed }, "the key belongs to this API"],
    [{ check: "api", isNeeded: false, ...passed }, "no API was told, so that a key of any can be used"],
    [{ check: "api", isNeeded: true, refusal: { check: "api" } }, "the key belongs to another API"],
    [{ check: "enabled", of: "key", isNeeded: true, ...passed }, "the key is enabled"],
    [{ check: "enabled", of: "owner", isNeeded: true, ...passed }, "the key's owner is enabled"],
    [{ check: "expiry", isNeeded: true, ...passed }, "the key has not expired"],
    [{ check: "expiry", isNeeded: false, ...passed }, "the key does not expire"],
    [{ check: "ip", isNeeded: true, ...passed }, "the key can be used from this address"],
    [{ check: "ip", isNeeded: false, ...passed }, "the key can be used from all addresses"],
    [{ check: "permissions", isNeeded: true, ...passed }, "the key has the permissions that were asked for"],
    [{ check: "permissions", isNeeded: false, ...passed }, "no permissions were asked for"],
    [
      { check: "limit", of: "key", name: undefined, mode: "local", state, cost: 2, ...passed },
      "the limit of the key suffices: 3 of 10 left, 2 needed (local)",
    ],
    [
      {
        check: "limit",
        of: "owner",
        name: "month",
        mode: "strict",
        state,
        cost: 4,
        refusal: { check: "limit", of: "owner", name: "month" },
      },
      "the limit month of the key's owner has not enough left: 3 of 10 left, 4 needed (strict)",
    ],
    [
      { check: "counter", of: "key", remaining: 5, nextRefillMs: undefined, cost: 5, ...passed },
      "the counter of the key suffices: 5 left, 5 needed",
    ],
    [
      {
        check: "counter",
        of: "owner",
        remaining: 5,
        nextRefillMs: Date.UTC(2026, 11),
        cost: 6,
        refusal: { check: "counter", of: "owner" },
      },
      "the counter of the key's owner has not enough left: 5 left, 6 needed, refilled at 2026-12-01T00:00:00.000Z",
    ],
  ])("%j: %s", (check, words) => {
    expect(phraseCheck(check)).toBe(words);
  });
});
