import { describe, expect, it } from "vitest";
import {
  type Allowance,
  allowanceAfter,
  grantRefusal,
  isInForce,
  unlimitedRootKey,
} from "../../src/domain/root-key.ts";

const all: Allowance = { permissions: ["*"], apiIds: undefined, expiresAtMs: undefined };
const may = (...permissions: string[]): Allowance => ({ ...all, permissions });

describe("what one root key may grant, change and revoke of another", () => {
  it.each<[string, granter: Allowance, granted: Allowance, refusal: string | undefined]>([
    ["everything by everything", all, all, undefined],
    ["less by everything", all, { permissions: ["keys.read"], apiIds: ["a"], expiresAtMs: 5 }, undefined],
    ["nothing by anything", may("keys.read"), may(), undefined],
    ["its own permissions", may("keys.read", "rootKeys.*"), may("rootKeys.update", "keys.read"), undefined],
    ["a group by the group", may("keys.*"), may("keys.*", "keys.read"), undefined],
    ["a group by one of it", may("keys.read"), may("keys.*"), "keys.*"],
    ["everything by a group", may("keys.*"), may("*"), "permission \\*"],
    ["a permission that it lacks", may("keys.read", "rootKeys.update"), may("keys.read", "keys.create"), "keys.create"],
    ["an earlier end", { ...all, expiresAtMs: 10 }, { ...all, expiresAtMs: 9 }, undefined],
    ["the same end", { ...all, expiresAtMs: 10 }, { ...all, expiresAtMs: 10 }, undefined],
    ["a later end", { ...all, expiresAtMs: 10 }, { ...all, expiresAtMs: 11 }, "expires"],
    ["no end by one that ends", { ...all, expiresAtMs: 10 }, all, "expires"],
    ["anything by one that is limited", { ...all, apiIds: ["a"] }, { ...may(), apiIds: ["a"] }, "limited to APIs"],
  ])("%s", (_, granter, granted, refusal) => {
    const answer = grantRefusal(granter, granted);
    if (refusal === undefined) expect(answer).toBeUndefined();
    else expect(answer).toMatch(new RegExp(refusal));
  });
});

describe("changes of a root key", () => {
  const before: Allowance = { permissions: ["keys.read"], apiIds: ["a"], expiresAtMs: 5 };
  it.each([
    [{}, before],
    [{ name: "name" }, before],
    [{ permissions: ["*"] }, { ...before, permissions: ["*"] }],
    [{ apiIds: ["b"] }, { ...before, apiIds: ["b"] }],
    [
      { apiIds: null, expiresAtMs: null },
      { ...before, apiIds: undefined, expiresAtMs: undefined },
    ],
    [{ expiresAtMs: 9 }, { ...before, expiresAtMs: 9 }],
  ])("%j leave what it allows, or change it", (changes, after) => {
    expect(allowanceAfter(before, changes)).toEqual(after);
  });
});

describe("a root key", () => {
  it("is in force until the millisecond before it expires", () => {
    const verdict = { ...unlimitedRootKey("root"), expiresAtMs: 10 };
    expect([9, 10, 11].map((nowMs) => isInForce(verdict, nowMs))).toEqual([true, false, false]);
    expect([isInForce(unlimitedRootKey("root"), 10), isInForce(undefined, 10)]).toEqual([true, false]);
  });
});
