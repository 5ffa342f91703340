import { keyIdCalls } from "../protocols.ts";
import { type BadRequest, badJson } from "./bad-request.ts";

/* Bodies that are no JSON, or JSON that different readers would read differently. */

const notJson: [string, string | Uint8Array][] = [
  ["an empty body", ""],
  ["nothing but spaces", " \r\n\t"],
  ["a bare word", "cnry"],
  ["XML", "<key>cnry</key>"],
  ["a form", "apiId=cnry&remaining=7391"],
  ["a body cut off in a name", '{"api'],
  ["a body cut off in a value", '{"apiId":"cnry'],
  ["a body cut off after a value", '{"apiId":"cnry"'],
  ["a body cut off after a comma", '{"apiId":"cnry",'],
  ["a body cut off in an escape", '{"apiId":"cnry\\u00'],
  ["a body cut off in a literal", '{"enabled":tru'],
  ["a comma at the end", '{"apiId":"cnry",}'],
  ["no comma", '{"apiId":"cnry" "name":"cnry"}'],
  ["no colon", '{"apiId" "cnry"}'],
  ["single quotes", "{'apiId':'cnry'}"],
  ["a name without quotes", '{apiId:"cnry"}'],
  ["a comment", '{"apiId":"cnry"/* 7391 */}'],
  ["two documents", '{"apiId":"cnry"}{"apiId":"cnry"}'],
  ["words behind the document", '{"apiId":"cnry"} cnry'],
  ["NaN", '{"apiId":"cnry","remaining":NaN}'],
  ["Infinity", '{"apiId":"cnry","remaining":Infinity}'],
  ["a leading zero", '{"apiId":"cnry","remaining":07391}'],
  ["a plus sign", '{"apiId":"cnry","remaining":+7391}'],
  ["hexadecimal", '{"apiId":"cnry","remaining":0x7391}'],
  ["a lone minus", '{"apiId":"cnry","remaining":-}'],
  ["a fraction without digits", '{"apiId":"cnry","remaining":7391.}'],
  ["an exponent without digits", '{"apiId":"cnry","remaining":7391e}'],
  ["a line end in a text", '{"apiId":"cnry\n"}'],
  ["an unknown escape", '{"apiId":"cnry\\x41"}'],
  ["an escape that is not hexadecimal", '{"apiId":"cnry\\u00zz"}'],
  ["a byte order mark", '\ufeff{"apiId":"cnry"}'],
  ["UTF-16", Buffer.from('{"apiId":"cnry"}', "utf16le")],
  ["a lone continuation byte", bytesInText(0x80)],
  ["an overlong encoding", bytesInText(0xc0, 0xaf)],
  ["half a pair in UTF-8", bytesInText(0xed, 0xa0, 0x80)],
  ["a character cut off", bytesInText(0xe2, 0x82)],
  ["a character beyond Unicode", bytesInText(0xf5, 0x80, 0x80, 0x80)],
  ["Latin-1", Buffer.from('{"apiId":"cnryé"}', "latin1")],
];

const notAnObject: [string, string][] = [
  ["null", "null"],
  ["an array", '[{"apiId":"cnry"}]'],
  ["a text", '"cnry"'],
  ["a number", "7391"],
  ["a boolean", "true"],
];

/** The field at fault, where it is inside. */
const ambiguous: [string, string, string][] = [
  ["33 levels", "", `${'{"meta":'.repeat(33)}7391${"}".repeat(33)}`],
  ["60000 levels", "", "[".repeat(60_000)],
  ["the same name twice", "", '{"apiId":"cnry","apiId":"cnry"}'],
  ["the same name twice, once escaped", "", '{"apiId":"cnry","\\u0061piId":"cnry"}'],
  ["the same name twice in refill", "refill", '{"refill":{"amount":7391,"amount":7391}}'],
  ["the same name twice in meta", "meta", '{"apiId":"cnry","meta":{"cnry-x1":7391,"cnry-x1":7391}}'],
  ["NUL in a text", "apiId", '{"apiId":"cnry\\u0000"}'],
  ["NUL in meta", "meta", '{"apiId":"cnry","meta":{"note":"cnry\\u0000"}}'],
  ["NUL in a name in meta", "meta", '{"apiId":"cnry","meta":{"cnry\\u0000":7391}}'],
  ["half a surrogate pair, the first", "name", '{"apiId":"cnry","name":"cnry\\ud800"}'],
  ["half a surrogate pair, the second", "name", '{"apiId":"cnry","name":"cnry\\udc00x"}'],
  ["half a surrogate pair in meta", "meta", '{"meta":{"list":[7391,"cnry\\ud83d"]}}'],
  ["a surrogate pair the wrong way round", "ownerId", '{"ownerId":"cnry\\ude00\\ud83d"}'],
  ["__proto__ in meta", "meta", '{"apiId":"cnry","meta":{"__proto__":{"cnry":7391}}}'],
  ["__proto__, escaped, in meta", "meta", '{"meta":{"inner":{"\\u005f_proto__":7391}}}'],
  ["an integer beyond 2^53 in meta", "meta", '{"apiId":"cnry","meta":{"n":73910000000000000000}}'],
  ["an infinite number in meta", "meta", '{"apiId":"cnry","meta":{"n":-7391e999}}'],
  ["an infinite number behind a name that is not plain", "meta", '{"meta":{"cnry-x1":{"n":7391e999}}}'],
  ["an infinite number behind a plain name in meta", "meta", '{"meta":{"cnry_x1":{"n":7391e999}}}'],
  ["the same plain name twice in meta", "meta", '{"meta":{"in":{"cnry_x1":7391,"cnry_x1":7391}}}'],
  ["an infinite number behind an unknown name", "", '{"cnry_x1":{"cnry_x2":[7391e999]}}'],
];

export const jsonTexts: BadRequest[] = [
  ...notJson.map(([name, body]) => badJson(name, "createKey", "", body)),
  ...notAnObject.map(([name, body]) => badJson(`${name} on top`, "createKey", "", body, { says: "must be an object" })),
  ...notAnObject.map(([name, body]) => badJson(`${name} on top`, "verifyKey", "", body, { says: "must be an object" })),
  ...ambiguous.map(([name, field, body]) => badJson(name, "createKey", field, body)),
  badJson("NUL in the key", "verifyKey", "key", '{"key":"cnry\\u0000"}'),
  badJson("the key twice", "verifyKey", "", '{"key":"cnry","key":"cnry"}'),
  ...keyIdCalls.map((call) => badJson("the keyId twice", call, "", '{"keyId":"cnry","keyId":"cnry"}')),
];

function bytesInText(...bytes: number[]): Uint8Array {
  return Buffer.concat([Buffer.from('{"apiId":"cnry'), Buffer.from(bytes), Buffer.from('"}')]);
}
