import { create, equals, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMessage } from "../../../src/rpc/decoding/read-message.ts";
import { dialectOf, type RpcDialect } from "../../../src/rpc/rpc-dialect.ts";
import { frame } from "../protocols.ts";
import { CANARY, refusalOf, told } from "./refusal.ts";
import { changes, readBinary, readJson, update } from "./update-fixture.ts";

const changeable = "long_name, colour, enabled, size, count, expires, meta, part, tags, users, rule, rules";
const nothingChanges =
  "changes nothing; send at least one of longName, colour, enabled, size, count, expires, meta, part, tags, users, rule, rules";
const changeableInRule = "active, limit, kept, note, part";
const nothingInRule = "changes nothing; send at least one of active, limit, kept, note, part";
const cannotBeRemoved = "cannot be removed; send a value or leave the field out";

interface Kind {
  readonly field: string;
  readonly path: string;
  readonly value: unknown;
  /** A value that breaks a rule of the proto file, and what is said of it. */
  readonly bad?: readonly [value: unknown, message: string];
  readonly canRemove: boolean;
}

const kinds: readonly Kind[] = [
  { field: "longName", path: "long_name", value: "a", bad: ["", "must be at least 1 characters"], canRemove: true },
  { field: "colour", path: "colour", value: "red", bad: [CANARY, "must be red or blue"], canRemove: true },
  { field: "enabled", path: "enabled", value: false, canRemove: false },
  { field: "size", path: "size", value: 0, bad: [-1, "must be greater than or equal to 0"], canRemove: true },
  { field: "count", path: "count", value: 0, canRemove: false },
  { field: "expires", path: "expires", value: 1e12, bad: [1.5, "must be a whole number"], canRemove: true },
  { field: "meta", path: "meta", value: { a: null }, canRemove: true },
  { field: "part", path: "part", value: { name: "a" }, canRemove: true },
  {
    field: "tags",
    path: "tags",
    value: ["a"],
    bad: [["a", "b", "c"], "must contain no more than 2 item(s)"],
    canRemove: false,
  },
  { field: "users", path: "users", value: ["a"], canRemove: true },
];

describe.each(kinds)("an update of $field", ({ field, path, value, bad, canRemove }) => {
  const other = { widgetId: "w", size: 3, longName: "other" };
  const { [field as "size"]: _, ...others } = other;
  const otherPaths = ["long_name", "size"].filter((name) => name !== path);

  it("that is absent keeps it", () => {
    for (const message of [readJson(others), readBinary(others), readBinary(others, otherPaths)]) {
      expect(changes(message)).not.toHaveProperty(field);
      expect(message).toMatchObject({ updateMask: { paths: otherPaths } });
    }
  });

  it("that is a value sets it", () => {
    const sent = { widgetId: "w", [field]: value };
    for (const message of [readJson(sent), readBinary(sent), readBinary(sent, [path])]) {
      expect(changes(message)).toMatchObject({ [field]: value });
      expect(message).toMatchObject({ updateMask: { paths: [field === "part" ? "part.name" : path] } });
    }
    expect(equals(update, readJson(sent), readBinary(sent, [path]))).toBe(true);
  });

  it("that is null, or in the mask and absent, removes it if it can be absent", () => {
    const asJson = () => readJson({ widgetId: "w", [field]: null });
    const asBinary = () => readBinary({ widgetId: "w" }, [path]);
    if (canRemove) {
      expect(changes(asJson())).toEqual({ [field]: null });
      expect(equals(update, asJson(), asBinary())).toBe(true);
    } else {
      expect(told(refusalOf(asJson))).toBe(`${field}: ${cannotBeRemoved}`);
      // In binary an empty list is a value like others.
      if (field === "tags") expect(changes(asBinary())).toEqual({ tags: [] });
      else expect(told(refusalOf(asBinary))).toBe(`${field}: ${cannotBeRemoved}`);
    }
  });

  it("that is in the message and not in the mask is dropped, good or bad", () => {
    // But for a list that is too long, whose elements are not even read.
    for (const sent of bad === undefined || Array.isArray(value) ? [value] : [value, bad[0]]) {
      const message = readBinary({ ...others, [field]: sent }, otherPaths);
      expect(equals(update, message, readBinary(others, otherPaths))).toBe(true);
    }
  });
});

const kindsWithRules = kinds.flatMap(({ bad, ...kind }) => (bad === undefined ? [] : [{ ...kind, bad }]));

it.each(kindsWithRules)(
  "an update of $field that breaks its rules is refused",
  ({ field, path, bad: [value, message] }) => {
    const sent = { widgetId: "w", [field]: value };
    for (const read of [() => readJson(sent), () => readBinary(sent), () => readBinary(sent, [path])]) {
      expect(told(refusalOf(read))).toBe(`${field}: ${message}`);
    }
  },
);

describe("an update in JSON", () => {
  it.each<[object, string]>([
    [{ widgetId: "w" }, nothingChanges],
    [{ widgetId: "w", ifVersion: 1 }, nothingChanges],
    [{ widgetId: null, size: 1 }, "widgetId: must not be null; send a value or leave the field out"],
    [{ widgetId: "w", ifVersion: null, size: 1 }, "ifVersion: must not be null; send a value or leave the field out"],
    [{ widgetId: "w", part: { name: null } }, `part.name: ${cannotBeRemoved}`],
    [{ widgetId: "w", tags: [null] }, "tags[0]: must be a string"],
    [{ widgetId: "w", users: [] }, "users: must not be empty; null removes it"],
    [{ size: 1 }, "widgetId: is required and must not be empty"],
    [{ widgetId: "w", size: "1" }, "size: must be a number"],
    [{ widgetId: "w", part: {} }, "part: changes nothing; send at least one of name"],
    [{ widgetId: "w", part: { name: "" } }, "part.name: must not be empty"],
    [{ widgetId: "w", rule: {} }, `rule: ${nothingInRule}`],
    [{ widgetId: "w", size: 1, rule: {} }, `rule: ${nothingInRule}`],
    [{ widgetId: "w", rule: { used: 1 } }, `rule: ${nothingInRule}`],
    [{ widgetId: "w", rule: { part: {} } }, "rule.part: changes nothing; send at least one of name"],
    [{ widgetId: "w", rule: { limit: 0 } }, "rule.limit: must not be 0"],
    [{ widgetId: "w", rule: { limit: null } }, `rule.limit: ${cannotBeRemoved}`],
    [{ widgetId: "w", rule: { limit: -1 } }, "rule.limit: must be greater than or equal to 1"],
    [{ widgetId: "w", rule: { part: { name: null } } }, `rule.part.name: ${cannotBeRemoved}`],
    [{ widgetId: "w", rule: [] }, "rule: must be an object"],
    [{ widgetId: "w", rules: [{ limit: 1 }] }, "rules[0].name: is required and must not be empty"],
    [
      { widgetId: "w", rules: [{ name: null }] },
      "rules[0].name: must not be null; send a value or leave the field out",
    ],
    [{ widgetId: "w", rules: [{ name: "a" }, { name: "b", limit: 0 }] }, "rules[1].limit: must not be 0"],
    [{ widgetId: "w", rules: [{ name: "a", limit: null }] }, `rules[0].limit: ${cannotBeRemoved}`],
    [
      { widgetId: "w", size: 1, updateMask: CANARY },
      `has an unknown field (known: widgetId, ifVersion, longName, colour, enabled, size, count, expires, meta, part, tags, users, rule, rules)`,
    ],
  ])("%o is refused: %s", (json, message) => {
    expect(told(refusalOf(() => readJson(json)))).toBe(message);
  });

  it("may set a list to an empty one, if its absence means nothing", () => {
    expect(changes(readJson({ widgetId: "w", tags: [] }))).toEqual({ tags: [] });
  });
});

describe("an update in binary", () => {
  const sent = { widgetId: "w", size: 1 };

  it.each<[readonly string[], string]>([
    [["size", "size"], "updateMask: names a field twice"],
    [["rule.active", "rule.active"], "updateMask: names a field twice"],
    [["rule.limits"], `updateMask: names a field that cannot be changed (known: ${changeableInRule})`],
    [["rule.used"], `updateMask: names a field that cannot be changed (known: ${changeableInRule})`],
    [["rule.part.size"], "updateMask: names a field that cannot be changed (known: name)"],
    [["rule.limit"], `rule.limit: ${cannotBeRemoved}`],
    [["rule.part.name"], `rule.part.name: ${cannotBeRemoved}`],
    ...["widget_id", "update_mask", "longName", "size.a", "rules.limit", "*", "", CANARY, "__proto__"].map(
      (path) =>
        [[path], `updateMask: names a field that cannot be changed (known: ${changeable})`] as [string[], string],
    ),
  ])("with the mask %o is refused: %s", (paths, message) => {
    expect(told(refusalOf(() => readBinary(sent, paths)))).toBe(message);
  });

  it("without a mask, or with an empty one, removes nothing, and is refused if it changes nothing", () => {
    expect(changes(readBinary(sent))).toEqual({ size: 1 });
    expect(readBinary(sent, [])).toEqual(readBinary(sent));
    expect(told(refusalOf(() => readBinary({ widgetId: "w" }, [])))).toBe(nothingChanges);
    expect(told(refusalOf(() => readBinary({ widgetId: "w", ifVersion: 3 })))).toBe(nothingChanges);
  });

  it("has the same mask after decoding in whichever order the paths came", () => {
    const one = readBinary({ widgetId: "w", size: 1 }, ["colour", "size", "long_name"]);
    expect(one).toEqual(readBinary({ widgetId: "w", size: 1 }, ["size", "long_name", "colour"]));
    expect(one).toMatchObject({ updateMask: { paths: ["long_name", "colour", "size"] } });
  });
});

it("every protocol reads the same change as the same message", () => {
  const json = Buffer.from('{"widgetId":"w","size":1,"longName":null}');
  const mask = { paths: ["size", "long_name"] };
  const sent = { widgetId: "w", size: 1, updateMask: mask } as MessageInitShape<typeof update>;
  const binary = toBinary(update, create(update, sent));
  const expected = readJson({ widgetId: "w", size: 1, longName: null });
  for (const [type, body] of [
    ["application/json", json],
    ["application/proto", binary],
    ["application/grpc+json", frame(json)],
    ["application/grpc", frame(binary)],
    ["application/grpc-web+json", frame(json)],
    ["application/grpc-web+proto", frame(binary)],
  ] as const) {
    const { encoding, messageIn } = dialectOf(type) as RpcDialect;
    expect(readMessage(update, { encoding, bytes: messageIn(body) }), type).toEqual(expected);
  }
});

it("the same change is the same message, as JSON and as binary with a mask", () => {
  const text = fc.string({ minLength: 1, unit: "grapheme" });
  const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
  const change = fc.record(
    {
      longName: orNull(text),
      colour: orNull(fc.constantFrom("red", "blue")),
      enabled: fc.boolean(),
      size: orNull(fc.nat()),
      count: fc.nat(),
      expires: orNull(fc.nat()),
      meta: orNull(fc.dictionary(text, fc.oneof(text, fc.boolean(), fc.constant(null)), { noNullPrototype: true })),
      part: orNull(fc.record({ name: text })),
      tags: fc.array(text, { maxLength: 2 }),
      users: orNull(fc.array(text, { minLength: 1, maxLength: 3 })),
    },
    { requiredKeys: [] },
  );
  const pathOf = new Map(kinds.map(({ field, path }) => [field, path]));
  fc.assert(
    fc.property(change, fc.option(fc.nat(), { nil: undefined }), (changed, ifVersion) => {
      fc.pre(Object.keys(changed).length > 0 && !JSON.stringify(changed).includes("__proto__"));
      const head = { widgetId: "w", ...(ifVersion !== undefined && { ifVersion }) };
      const isSet = ([, value]: [string, unknown]) => value !== null;
      const init = { ...head, ...Object.fromEntries(Object.entries(changed).filter(isSet)) };
      const byMask = readBinary(
        init,
        Object.keys(changed).map((name) => pathOf.get(name) as string),
      );
      const byJson = readJson({ ...head, ...changed });
      expect(byJson).toEqual(byMask);
      expect(changes(byJson)).toMatchObject(changed);
      expect(Object.keys(changes(byJson)).sort()).toEqual(Object.keys(changed).sort());
    }),
  );
});
