import { describe, expect, it } from "vitest";
import { codeOfRefusal, phraseRefusal, type RefusalReason } from "../../src/domain/refusal-reason.ts";

describe("the reason of a refusal", () => {
  it.each<[reason: RefusalReason, code: string, words: string]>([
    [{ check: "api" }, "FORBIDDEN", "the key belongs to another API"],
    [{ check: "enabled", of: "key" }, "DISABLED", "the key is disabled"],
    [{ check: "enabled", of: "owner" }, "DISABLED", "the key's owner is disabled"],
    [{ check: "expiry" }, "EXPIRED", "the key has expired"],
    [{ check: "ip", isTold: true }, "FORBIDDEN", "the key cannot be used from this address"],
    [{ check: "ip", isTold: false }, "FORBIDDEN", "the key can be used from some addresses only, and none was told"],
    [{ check: "permissions", missing: "a OR b" }, "INSUFFICIENT_PERMISSIONS", "the key lacks a OR b"],
    [{ check: "limit", of: "key" }, "RATE_LIMITED", "the limit of the key is reached"],
    [{ check: "limit", of: "owner", name: "month" }, "RATE_LIMITED", "the limit month of the key's owner is reached"],
    [{ check: "counter", of: "key" }, "USAGE_EXCEEDED", "the counter of the key is used up"],
    [{ check: "counter", of: "owner" }, "USAGE_EXCEEDED", "the counter of the key's owner is used up"],
  ])("%j is %s: %s", (reason, code, words) => {
    expect(codeOfRefusal(reason)).toBe(code);
    expect(phraseRefusal(reason)).toBe(words);
  });
});
