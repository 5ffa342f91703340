import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../../src/rpc/decoding/parse-json.ts";
import { InvalidRequest } from "../../../src/rpc/invalid-request.ts";
import { BODY_MAX_BYTES, CANARY, expectWithinDeadline, outcomeOf, refusalOf, told } from "./refusal.ts";

describe("parseJson accepts", () => {
  it.each([
    ["null"],
    [" \t\r\n true \n"],
    ["-0"],
    ["0.5e-3"],
    ["1E+2"],
    ["9007199254740991"],
    ["-9007199254740991"],
    ["1e300"],
    ["{}"],
    ["[ ]"],
    ['{ "a" : [ 1 , { "b" : null } ] , "" : "" }'],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00 é😀\u2028"'],
    ['{"constructor":1,"toString":2,"hasOwnProperty":3,"2":0,"1":0}'],
    ["[".repeat(32) + "]".repeat(32)],
  ])("%s as JSON.parse does", (text) => {
    expect(parseText(text)).toStrictEqual(JSON.parse(text));
  });

  it("everything that JSON.stringify prints", () => {
    fc.assert(
      fc.property(strictJson, (value) => {
        const text = JSON.stringify(value);
        expect(parseText(text)).toStrictEqual(JSON.parse(text));
        expect(parseText(JSON.stringify(value, null, "\t"))).toStrictEqual(JSON.parse(text));
      }),
    );
  });
});

describe("parseJson refuses", () => {
  const notJson = "is not valid JSON: expected";
  const unsafe = "must be between -9007199254740991 and 9007199254740991";
  it.each([
    ["an empty body", "", "is empty"],
    ["a body of white space", " \n", `${notJson} a value at position 2`],
    ["a byte order mark", `\uFEFF{"a":"${CANARY}"}`, `${notJson} a value at position 0`],
    ["a bare word", CANARY, `${notJson} a value at position 0`],
    ["a misspelt literal", `{"a":"${CANARY}","b":ture}`, `${notJson} a value at position 23`],
    ["trailing content", `{} "${CANARY}"`, `${notJson} nothing more at position 3`],
    ["a trailing comma in an object", `{"a":"${CANARY}",}`, `${notJson} a name at position 19`],
    ["a trailing comma in an array", `["${CANARY}",]`, `${notJson} a value at position 15`],
    ["an unquoted name", `{a:"${CANARY}"}`, `${notJson} a name at position 1`],
    ["a missing colon", `{"a" "${CANARY}"}`, `${notJson} ':' at position 5`],
    ["a missing comma", `{"a":1 "b":"${CANARY}"}`, `${notJson} ',' or '}' at position 7`],
    ["a missing comma in an array", `["${CANARY}" 1]`, `${notJson} ',' or ']' at position 15`],
    ["an unclosed object", `{"a":"${CANARY}"`, `${notJson} ',' or '}' at position 18`],
    ["an unclosed string", `"${CANARY}`, `${notJson} the rest of a string at position 12`],
    ["a control character in a string", `"${CANARY}\n"`, `${notJson} the rest of a string at position 12`],
    ["an unknown escape", `"${CANARY}\\x41"`, `${notJson} an escape sequence at position 12`],
    ["a short escape", `"${CANARY}\\u12g4"`, `${notJson} an escape sequence at position 12`],
    ["single quotes", `'${CANARY}'`, `${notJson} a value at position 0`],
    ["a comment", `{}/*${CANARY}*/`, `${notJson} nothing more at position 2`],
    ["a leading zero", "01", `${notJson} nothing more at position 1`],
    ["a plus sign", "+1", `${notJson} a value at position 0`],
    ["a bare fraction", ".5", `${notJson} a value at position 0`],
    ["an unfinished fraction", "1.", `${notJson} nothing more at position 1`],
    ["an unfinished exponent", "1e", `${notJson} nothing more at position 1`],
    ["NaN", "NaN", `${notJson} a value at position 0`],
    ["an integer above 2^53-1", '{"a":{"b":[0,9007199254740992]}}', `a.b[1]: ${unsafe}`],
    ["an integer below -(2^53-1)", '{"a":-9007199254740992}', `a: ${unsafe}`],
    ["an endless integer", `{"a":${"9".repeat(400)}}`, `a: ${unsafe}`],
    ["a number beyond double", '{"a":1e400}', "a: must be a finite number"],
    ["a duplicate name", `{"a":"${CANARY}","a":1}`, "has the same field twice"],
    ["a duplicate name, escaped", '{"a":1,"\\u0061":1}', "has the same field twice"],
    ["a duplicate name inside", `{"meta":{"x":[{"b":"${CANARY}","b":1}]}}`, "meta.x[0]: has the same field twice"],
    ["__proto__", `{"a":{"__proto__":{"x":"${CANARY}"}}}`, "a: has a field with a reserved name"],
    ["__proto__, escaped", '{"\\u005f_proto__":1}', "has a field with a reserved name"],
    ["NUL in a string", `{"a":"${CANARY}\\u0000"}`, "a: must not contain the NUL character"],
    ["NUL in a name", `{"a":{"${CANARY}\\u0000":1}}`, "a: must not contain the NUL character"],
    ["a lone high surrogate", `{"a":"${CANARY}\\ud83d"}`, "a: must not contain half of a surrogate pair"],
    ["a lone low surrogate", `{"a":"\\ude00${CANARY}"}`, "a: must not contain half of a surrogate pair"],
    ["a reversed surrogate pair in a name", '{"\\ude00\\ud83d":1}', "must not contain half of a surrogate pair"],
    ["nesting beyond 32", `${"[".repeat(33)}"${CANARY}"${"]".repeat(33)}`, "is nested more than 32 deep"],
  ])("%s", (_, text, message) => {
    const error = refusalOf(() => parseText(text));
    expect(told(error)).toBe(message);
    expect(error.message).not.toContain(CANARY);
    expect(JSON.stringify(error.violations)).not.toContain(CANARY);
  });

  it.each([
    ["a stray continuation byte", [0x80]],
    ["an overlong NUL", [0xc0, 0x80]],
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["a truncated character", [0xf0, 0x9f, 0x98]],
  ])("invalid UTF-8: %s", (_, bytes) => {
    const body = Buffer.concat([Buffer.from(`"${CANARY}`), Buffer.from(bytes), Buffer.from('"')]);
    expect(told(refusalOf(() => parse(body)))).toBe("is not valid UTF-8");
  });

  it("random bytes with a InvalidRequest and nothing else", () => {
    const nearlyJson = fc
      .array(fc.constantFrom(...'{}[]:,"\\u0eE+-.19tfn \0\x80é'))
      .map((characters) => Buffer.from(characters.join("")));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), nearlyJson), (bytes) => {
        const ours = outcomeOf(() => parse(bytes));
        if (ours instanceof InvalidRequest) return;
        // Every other parser must read an accepted text in the same way.
        expect(ours).toStrictEqual(JSON.parse(Buffer.from(bytes).toString()));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("parseJson survives 64 KiB of", () => {
  it.each([
    ["opening brackets", "["],
    ["opening objects", '{"a":'],
    ["quotes", '"'],
    ["backslashes", "\\"],
    ["escapes in one string", "\\n", '"'],
    ["surrogate escapes in one string", "\\ud83d\\ude00", '"'],
    ["digits", "9"],
    ["exponent digits", "9", "1e"],
    ["fraction digits", "1", "0."],
    ["minus signs", "-"],
    ["white space", " "],
    ["array elements", "0,", "["],
  ])("%s", (_, part, start = "") => {
    const body = Buffer.from(start + part.repeat(BODY_MAX_BYTES / part.length));
    expectWithinDeadline(() => outcomeOf(() => parse(body)));
  });

  it("distinct names, and is not built of more than any request may have", () => {
    const bodyOf = (count: number) => Buffer.from(`{${Array.from({ length: count }, (_, i) => `"${i}":0`).join(",")}}`);
    expectWithinDeadline(() => expect(Object.keys(parse(bodyOf(2_500)) as object)).toHaveLength(2_500));
    expect(told(refusalOf(() => parse(bodyOf(2_501))))).toBe("has more than 2500 fields");
    const zeros = (count: number) => Buffer.from(`[${"0,".repeat(count - 1)}0]`);
    expect(parse(zeros(8_192))).toHaveLength(8_192);
    expect(told(refusalOf(() => parse(zeros(8_193))))).toBe("must contain no more than 8192 item(s)");
  });
});

const text = fc
  .string({ unit: "binary" })
  .filter((value) => value !== "__proto__" && value.isWellFormed() && !value.includes("\0"));
// Printed without an exponent, a large double looks like an integer that cannot be exact.
const exactDouble = fc
  .double({ noDefaultInfinity: true, noNaN: true })
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
const strictJson = fc.anything({
  key: text,
  values: [text, exactDouble, fc.maxSafeInteger(), fc.boolean(), fc.constant(null)],
  maxDepth: 6,
});

/** Every name may be shown here: which ones are, decodeJson decides. */
function parse(bytes: Uint8Array): JsonValue {
  return parseJson(bytes, (trail) => trail.join(".").replace(/\.(\d+)/g, "[$1]"));
}

function parseText(text: string): JsonValue {
  return parse(Buffer.from(text));
}
