import { describe, expect, it } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import {
  counterOfOwner,
  type FreeStanding,
  freeStandingSubject,
  holderOfLimit,
  isFreeStanding,
  limitOfKey,
  limitOfOwner,
} from "../../src/domain/subject.ts";

/** Texts that look like parts of subjects, so that a careless concatenation would mix them up. */
const texts = ["a", "b", "a/b", "/", "-", "1/a", "1/a/-", "f/", "o/", "key_1", "key_1/a", "3/a/b", "\u{1f511}", " "];
const names = ["a", "b", "1", "-", "_.", "key_1"];
const keyIds = ["key_1", "key_2", "key_1a"];
const rules: Pick<RateLimit, "mode" | "durationMs">[] = [
  { mode: "local", durationMs: 1000 },
  { mode: "strict", durationMs: 1000 },
  { mode: "local", durationMs: 10_001 },
];

function* freeStanding(): Generator<[FreeStanding, (typeof rules)[number]]> {
  for (const namespace of texts)
    for (const identifier of texts)
      for (const apiId of [undefined, ...texts])
        for (const rule of rules) yield [{ namespace, identifier, apiId }, rule];
}

describe("subjects", () => {
  it("tell whose limit they count, if it has a name and belongs to somebody", () => {
    for (const name of names) {
      for (const id of keyIds) expect(holderOfLimit(limitOfKey(id, name))).toBe(id);
      for (const id of texts) expect(holderOfLimit(limitOfOwner(id, name))).toBe(counterOfOwner(id));
    }
    for (const id of keyIds) expect(holderOfLimit(id)).toBeUndefined();
    for (const given of freeStanding()) expect(holderOfLimit(freeStandingSubject(...given))).toBeUndefined();
  });

  it("are different for different things, whatever they are called", () => {
    const ofLimits = [
      ...keyIds,
      ...keyIds.flatMap((keyId) => names.map((name) => limitOfKey(keyId, name))),
      ...texts.flatMap((ownerId) => names.map((name) => limitOfOwner(ownerId, name))),
      ...Array.from(freeStanding(), ([named, rule]) => freeStandingSubject(named, rule)),
    ];
    // A key's counter has the subject of its limit without a name.
    const all = [...ofLimits, ...texts.map(counterOfOwner)];
    expect(new Set(all).size).toBe(all.length);
  });

  it("would not be, without the lengths of texts: the same check fails", () => {
    const careless = Array.from(freeStanding(), ([{ namespace, identifier, apiId }, rule]) =>
      [rule.mode, rule.durationMs, namespace, apiId ?? "-", identifier].join("/"),
    );
    expect(new Set(careless).size).toBeLessThan(careless.length);
  });

  it("tell free-standing ones from all others", () => {
    for (const [named, rule] of freeStanding()) expect(isFreeStanding(freeStandingSubject(named, rule))).toBe(true);
    for (const keyId of keyIds) expect(isFreeStanding(keyId)).toBe(false);
    for (const text of texts) expect(isFreeStanding(limitOfOwner(text, "f"))).toBe(false);
  });
});
