import { describe, expect, it } from "vitest";
import {
  createQueryParser,
  isGranted,
  missingFrom,
  type PermissionQuery,
  parsePermissionQuery,
  QuerySyntaxError,
  queryDepthMax,
  queryLengthMax,
  queryTermsMax,
  rememberedQueriesMax,
} from "../../src/domain/permission-query.ts";
import { covers } from "../../src/domain/permissions.ts";
import { SeededRandom } from "./seeded-random.ts";

const and = (...operands: PermissionQuery[]): PermissionQuery => ({ operator: "AND", operands });
const or = (...operands: PermissionQuery[]): PermissionQuery => ({ operator: "OR", operands });
const inParentheses = (depth: number) => `${"(".repeat(depth)}a${")".repeat(depth)}`;
const terms = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`).join(" OR ");

describe("a query of permissions", () => {
  it.each<[text: string, parsed: PermissionQuery]>([
    ["docs.read", "docs.read"],
    [" docs.read\t\r\n", "docs.read"],
    ["A-Z_0.9:x", "A-Z_0.9:x"],
    ["a AND b", and("a", "b")],
    ["a OR b", or("a", "b")],
    ["a AND b OR c AND d", or(and("a", "b"), and("c", "d"))],
    ["a AND (b OR c) AND d", and("a", or("b", "c"), "d")],
    ["docs.read AND (docs.write OR admin)", and("docs.read", or("docs.write", "admin"))],
    ["(a)AND(b)", and("a", "b")],
    ["a AND (b AND (c))", and("a", "b", "c")],
    ["a OR (b OR c)", or("a", "b", "c")],
    ["ANDROID OR ORDER", or("ANDROID", "ORDER")],
    ["AND.x OR x.OR", or("AND.x", "x.OR")],
    [inParentheses(queryDepthMax), "a"],
    ["x".repeat(128), "x".repeat(128)],
    [`a${" ".repeat(queryLengthMax - 1)}`, "a"],
  ])("%j is read", (text, parsed) => {
    expect(parsePermissionQuery(text)).toEqual(parsed);
  });

  it.each<[text: string, message: string]>([
    ["", "must have a permission or ( at character 1"],
    ["   ", "must have a permission or ( at character 4"],
    ["a b", "must have AND, OR or its end at character 3"],
    ["a and b", "must have AND, OR or its end at character 3"],
    ["a AND", "must have a permission or ( at character 6"],
    ["a AND AND b", "must have a permission or (, and not an operator, at character 7"],
    ["OR a", "must have a permission or (, and not an operator, at character 1"],
    ["and", "must have a permission or (, and not an operator, at character 1"],
    ["a OR Or", "must have a permission or (, and not an operator, at character 6"],
    ["()", "must have a permission or ( at character 2"],
    ["(a", "must have AND, OR or ) at character 3"],
    ["(a b)", "must have AND, OR or ) at character 4"],
    ["a)", "must have AND, OR or its end at character 2"],
    ["a(b)", "must have AND, OR or its end at character 2"],
    ["docs.*", "has a character that a permission in a query cannot have at character 6"],
    ["*", "has a character that a permission in a query cannot have at character 1"],
    ["NOT a", "must have AND, OR or its end at character 5"],
    ["a & b", "has a character that a permission in a query cannot have at character 3"],
    ["a, b", "has a character that a permission in a query cannot have at character 2"],
    ["a AND ü", "has a character that a permission in a query cannot have at character 7"],
    ["a\0", "has a character that a permission in a query cannot have at character 2"],
    [`a OR ${"x".repeat(129)}`, "must have a permission of at most 128 characters at character 6"],
    [inParentheses(queryDepthMax + 1), "must be nested at most 10 deep; it is deeper at character 11"],
    [terms(queryTermsMax + 1), `must have at most 50 permissions; it has more at character ${terms(50).length + 5}`],
    ["(".repeat(queryLengthMax), "must be nested at most 10 deep; it is deeper at character 11"],
    [" ".repeat(queryLengthMax + 1), "must have at most 1000 characters"],
  ])("%j is refused, and it says where", (text, message) => {
    expect(() => parsePermissionQuery(text)).toThrow(new QuerySyntaxError(message));
  });

  it("may have fifty permissions", () => {
    expect(parsePermissionQuery(terms(queryTermsMax))).toMatchObject({ operator: "OR" });
  });

  it.each<[query: string, permissions: string[], missing: string | undefined]>([
    ["docs.read", ["docs.read"], undefined],
    ["docs.read", ["docs.*"], undefined],
    ["docs.a.b", ["docs.*"], undefined],
    ["docs.read", ["*"], undefined],
    ["docs", ["docs.*"], "docs"],
    ["docs.read", [], "docs.read"],
    ["docs.read", ["docs.reader", "doc.*", "docs"], "docs.read"],
    ["a AND b", ["a"], "b"],
    ["a AND b", [], "a AND b"],
    ["a OR b", ["b"], undefined],
    ["a OR b", ["c"], "a OR b"],
    ["a AND b OR c", ["a"], "b OR c"],
    ["docs.read AND (docs.write OR admin)", ["docs.read"], "docs.write OR admin"],
    ["docs.read AND (docs.write OR admin)", [], "docs.read AND (docs.write OR admin)"],
    ["docs.read AND (docs.write OR admin)", ["admin"], "docs.read"],
    ["(a OR b) AND (c OR d)", ["x"], "(a OR b) AND (c OR d)"],
    ["(a OR b AND c) AND d", ["b", "d"], "a OR c"],
  ])("%s of a key with %j lacks %s", (text, permissions, missing) => {
    const query = parsePermissionQuery(text);
    expect(isGranted(query, permissions)).toBe(missing === undefined);
    if (missing !== undefined) expect(missingFrom(query, permissions)).toBe(missing);
  });

  it("means what it says, and what is missing is what would be enough: 5000 random ones", () => {
    const random = new SeededRandom(20_261_116);
    for (let run = 0; run < 5000; run++) {
      const made = randomQuery(random, 3);
      const permissions = names.filter(() => random.chance(0.3));
      if (random.chance(0.2)) permissions.push(random.pick(["*", "a.*", "b.*"]));
      const query = parsePermissionQuery(made.text);
      const expected = made.isMet(permissions);
      expect(isGranted(query, permissions), `${made.text} of ${permissions}`).toBe(expected);
      if (expected) continue;
      const missing = parsePermissionQuery(missingFrom(query, permissions));
      expect(isGranted(missing, permissions)).toBe(false);
      // Whatever else is granted: the query is met exactly where its missing part is.
      const more = [...permissions, ...names.filter(() => random.chance(0.4))];
      expect(isGranted(missing, more), `${made.text} of ${permissions} and then ${more}`).toBe(isGranted(query, more));
    }
  });

  it("is read or refused, never with another error, whatever the text: 5000 random ones", () => {
    const random = new SeededRandom(7);
    const pieces = ["a", "b.c", "AND", "OR", "or", "(", ")", " ", " ", "\t", "*", "é", "(", ")", "\u{1F600}"];
    for (let run = 0; run < 5000; run++) {
      const text = Array.from({ length: random.integer(0, 14) }, () => random.pick(pieces)).join("");
      try {
        expect(isGranted(parsePermissionQuery(text), ["*"])).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(QuerySyntaxError);
      }
    }
  });
});

describe("a parser that remembers", () => {
  it("reads a query once, and others than the last thousand again", () => {
    const parse = createQueryParser();
    const first = parse("a AND b");
    expect(parse("a AND b")).toBe(first);
    for (let i = 1; i < rememberedQueriesMax; i++) parse(`q${i} AND b`);
    expect(parse("a AND b")).toBe(first);
    parse("one AND more");
    expect(parse("a AND b")).not.toBe(first);
    expect(parse("a AND b")).toEqual(first);
  });

  it("refuses what is no query each time", () => {
    const parse = createQueryParser();
    for (let i = 0; i < 2; i++) expect(() => parse("a AND")).toThrow(QuerySyntaxError);
  });
});

const names = ["a.x", "a.y", "b.x", "b.y.z", "c"];

interface RandomQuery {
  readonly text: string;
  readonly isMet: (permissions: readonly string[]) => boolean;
}

/** With its meaning, told by another way than the parser's tree. */
function randomQuery(random: SeededRandom, depth: number): RandomQuery {
  const name = random.pick(names);
  if (depth === 0 || random.chance(0.3)) return { text: name, isMet: (permissions) => covers(permissions, name) };
  const parts = Array.from({ length: random.integer(2, 3) }, () => randomQuery(random, depth - 1));
  const operators = parts.slice(1).map(() => random.pick(["AND", "OR"]));
  const space = () => " ".repeat(random.integer(1, 2));
  const text = parts.map((part, index) => {
    const before = index === 0 ? "" : `${space()}${operators[index - 1]}${space()}`;
    return `${before}(${part.text})`;
  });
  const isMet = (permissions: readonly string[]) => {
    let anyOf = false;
    let allOf = true;
    parts.forEach((part, index) => {
      if (operators[index - 1] === "OR") {
        anyOf ||= allOf;
        allOf = true;
      }
      allOf &&= part.isMet(permissions);
    });
    return anyOf || allOf;
  };
  return { text: text.join(""), isMet };
}
