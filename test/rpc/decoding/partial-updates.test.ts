import { describe, expect, it } from "vitest";
import { decodeRpcJson } from "../../../src/rpc/decoding/read-message.ts";
import { validated } from "../../../src/rpc/validate.ts";
import { refusalOf, told } from "./refusal.ts";
import { changes, type Init, readBinary, readJson, update } from "./update-fixture.ts";

describe("a message in an update", () => {
  const updateOf = (rule: unknown) => ({ widgetId: "w", rule });
  const changesBy = (rule: Init, ...paths: string[]) => changes(readBinary(updateOf(rule), paths));

  it("changes what it has, in JSON and in binary without a mask", () => {
    for (const rule of [{ limit: 5 }, { active: false, note: "" }, { kept: true, part: { name: "p" } }]) {
      expect(changes(readJson(updateOf(rule)))).toEqual({ rule });
      expect(changes(readBinary(updateOf(rule)))).toMatchObject({ rule });
      expect(readBinary(updateOf(rule))).toEqual(readJson(updateOf(rule)));
    }
  });

  it("in JSON has what is off, what becomes what absent means, and what is removed", () => {
    expect(changes(readJson(updateOf({ kept: false })))).toEqual({ rule: { kept: false } });
    expect(changes(readJson(updateOf({ kept: null, active: null })))).toEqual({ rule: { kept: false, active: true } });
    expect(changes(readJson(updateOf({ note: null, part: null })))).toEqual({ rule: { note: null, part: null } });
  });

  it("in binary has what is off, what becomes what absent means, and what is removed by their paths", () => {
    expect(changes(readBinary(updateOf({ limit: 1, kept: false })))).toEqual({ rule: { limit: 1 } });
    expect(changesBy({}, "rule.kept", "rule.active")).toEqual({ rule: { kept: false, active: true } });
    expect(changesBy({}, "rule.note", "rule.part")).toEqual({ rule: { note: null, part: null } });
    const bare = readBinary({ widgetId: "w" }, ["rule.active"]);
    expect(changes(bare)).toEqual({ rule: { active: true } });
  });

  it("drops what a mask does not name in it", () => {
    const rule = { active: false, limit: 5, kept: true, note: "n", part: { name: "p" } };
    expect(changesBy(rule, "rule.limit")).toEqual({ rule: { limit: 5 } });
    expect(readBinary(updateOf(rule), ["rule.limit"])).toEqual(readJson(updateOf({ limit: 5 })));
    expect(changesBy(rule, "rule.part.name")).toMatchObject({ rule: { part: { name: "p" } } });
  });

  it("is replaced as a whole if a mask names it, also beside a path in it", () => {
    const whole = { active: true, limit: 5, kept: false, note: null, part: null };
    expect(changesBy({ limit: 5 }, "rule")).toEqual({ rule: whole });
    expect(changesBy({ limit: 5 }, "rule", "rule.note")).toEqual({ rule: whole });
    expect(told(refusalOf(() => changesBy({ kept: true }, "rule")))).toBe("rule.limit: is required");
    expect(changes(readBinary({ widgetId: "w" }, ["rule"]))).toEqual({ rule: null });
  });

  it("may be what was read: what it has more is ignored", () => {
    expect(changes(readJson(updateOf({ limit: 5, used: 3 })))).toEqual({ rule: { limit: 5 } });
    expect(changes(readJson(updateOf({ limit: 5, used: null })))).toEqual({ rule: { limit: 5 } });
  });

  it("follows its rules about presence when what is stored is known, and all others at once", () => {
    expect(changes(readJson(updateOf({ note: "n" })))).toEqual({ rule: { note: "n" } });
    expect(told(refusalOf(() => readBinary(updateOf({ limit: -1 }))))).toBe(
      "rule.limit: must be greater than or equal to 1",
    );
  });
});

describe("a list of messages in an update", () => {
  it("has what each of them changes", () => {
    const rules = [{ name: "a" }, { name: "b", limit: 3 }, { name: "c", active: false }];
    for (const message of [readJson({ widgetId: "w", rules }), readBinary({ widgetId: "w", rules })]) {
      expect(changes(message)).toEqual({ rules });
    }
    expect(changes(readJson({ widgetId: "w", rules: [{ name: "a", active: null }] }))).toEqual({
      rules: [{ name: "a", active: true }],
    });
  });

  it("replaces them if a mask names it", () => {
    const whole = readBinary({ widgetId: "w", rules: [{ name: "a", limit: 3 }] }, ["rules"]);
    expect(changes(whole)).toEqual({ rules: [{ name: "a", limit: 3, active: true }] });
    const incomplete = () => readBinary({ widgetId: "w", rules: [{ name: "a", limit: 3 }, { name: "b" }] }, ["rules"]);
    expect(told(refusalOf(incomplete))).toBe("rules[1].limit: is required");
    expect(changes(readBinary({ widgetId: "w" }, ["rules"]))).toEqual({ rules: null });
  });
});

describe("the mask of an update in the JSON codecs of gRPC and Connect", () => {
  const read = (json: object) => validated(update, decodeRpcJson(update, Buffer.from(JSON.stringify(json))));

  it("is the mask of the same message in binary", () => {
    const sent = { widgetId: "w", size: 1, rule: { limit: 5, kept: true }, rules: [{ name: "a", limit: 1 }] };
    for (const [jsonPaths, paths] of [
      ["size", ["size"]],
      ["longName,size", ["long_name", "size"]],
      ["rule.limit,rule.note", ["rule.limit", "rule.note"]],
      ["rule,rules", ["rule", "rules"]],
    ] as const) {
      expect(read({ ...sent, updateMask: jsonPaths })).toEqual(readBinary(sent, paths));
    }
  });

  it("is none if it is empty", () => {
    expect(read({ widgetId: "w", longName: null, updateMask: "" })).toEqual(
      readJson({ widgetId: "w", longName: null }),
    );
  });

  it.each<[object, string]>([
    [{ size: 1, updateMask: ["size"] }, "updateMask: must be a text: the names of fields, separated by commas"],
    [{ size: 1, updateMask: null }, "updateMask: must be a text: the names of fields, separated by commas"],
    [{ size: null, updateMask: "size" }, "size: must not be null where updateMask is given; leave the field out"],
    [
      { rule: { note: null }, updateMask: "rule" },
      "rule.note: must not be null where updateMask is given; leave the field out",
    ],
    [
      { rules: [{ name: "a" }, { name: "b", active: null }], updateMask: "size" },
      "rules[1].active: must not be null where updateMask is given; leave the field out",
    ],
  ])("is refused: %o", (json, message) => {
    expect(told(refusalOf(() => read({ widgetId: "w", ...json })))).toBe(message);
  });

  it("is refused if it names what cannot be changed", () => {
    const refusal = refusalOf(() => read({ widgetId: "w", size: 1, updateMask: "size,nothing" }));
    expect(told(refusal)).toContain("updateMask: names a field that cannot be changed");
  });
});
