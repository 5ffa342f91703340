import { apiIdCalls, type CallName, keyIdCalls } from "../protocols.ts";
import { type BadRequest, badJson } from "./bad-request.ts";

/* Fields of the wrong type and unknown names: possible only in JSON. */

const text = '"cnry"';
const number = "7391";
const truth = "true";
const list = '["cnry", 7391]';
const object = '{"cnry-x1": 7391}';
const fraction = "7391.5";
const largeExponent = "7391e9";
const beyondInt32 = "2147487391";
const beyondDoubles = "73917391739173917391";
const infinite = "7391e999";

const wrongForText = [number, truth, list, object];
const wrongForWhole = [text, '"7391"', truth, list, object, fraction, largeExponent, beyondInt32, beyondDoubles];
const wrongForObject = [text, number, truth, list];

const wrongTypes: [CallName, string, string[]][] = [
  ["createKey", "apiId", wrongForText],
  ["createKey", "prefix", wrongForText],
  ["createKey", "ownerId", wrongForText],
  ["createKey", "name", wrongForText],
  ["createKey", "byteLength", wrongForWhole],
  ["createKey", "remaining", wrongForWhole],
  ["createKey", "refill", wrongForObject],
  ["createKey", "refill.interval", wrongForText],
  ["createKey", "refill.amount", [text, fraction, beyondInt32]],
  ["createKey", "refill.carryOver", [text, number]],
  ["createKey", "ratelimit", wrongForObject],
  ["createKey", "ratelimit.async", [text, number]],
  ["createKey", "ratelimit.limit", [text, fraction]],
  ["createKey", "ratelimit.duration", [text, `-${number}`, "4294967391"]],
  ["createKey", "meta", wrongForObject],
  ["createKey", "expires", [text, '"7391"', truth, list, object, infinite, beyondDoubles]],
  ["createKey", "enabled", [text, number, list]],
  ["verifyKey", "key", wrongForText],
  ["verifyKey", "apiId", [number, list]],
  ["listKeys", "apiId", wrongForText],
  ["listKeys", "ownerId", wrongForText],
  ["listKeys", "enabled", [text, number, list]],
  ["listKeys", "expiresBefore", [text, '"7391"', truth, list, object, infinite, beyondDoubles]],
  ["listKeys", "search", wrongForText],
  ["listKeys", "limit", wrongForWhole],
  ["listKeys", "cursor", wrongForText],
  ["listEvents", "targetId", wrongForText],
  ["listEvents", "rootKeyId", wrongForText],
  ["listEvents", "method", wrongForText],
  ["listEvents", "since", [text, '"7391"', truth, list, object, infinite, beyondDoubles]],
  ["listEvents", "until", [text, '"7391"', truth, list, object, infinite, beyondDoubles]],
  ["listEvents", "limit", wrongForWhole],
  ["listEvents", "cursor", wrongForText],
  ["createKey", "useDefaults", [text, number, list]],
  ...(["createApi", "updateApi"] satisfies CallName[]).flatMap((call): [CallName, string, string[]][] => [
    [call, "name", wrongForText],
    [call, "defaults", wrongForObject],
    [call, "defaults.prefix", wrongForText],
    [call, "defaults.byteLength", [text, fraction, beyondInt32]],
    [call, "defaults.remaining", [text, fraction, beyondInt32]],
    [call, "defaults.ratelimit", wrongForObject],
    [call, "defaults.refill.carryOver", [text, number]],
  ]),
  ["createApi", "apiId", wrongForText],
  ["updateApi", "ifVersion", [text, fraction, "4294967391"]],
  ["deleteApi", "force", [text, number, list]],
  ["listApis", "limit", wrongForWhole],
  ["listApis", "cursor", wrongForText],
  ...apiIdCalls.map((call): [CallName, string, string[]] => [call, "apiId", wrongForText]),
  ...keyIdCalls.map((call): [CallName, string, string[]] => [call, "keyId", wrongForText]),
];

interface WrongName {
  readonly call: CallName;
  readonly body: string;
  readonly field: string;
  readonly says?: string;
  readonly neverSays?: string;
}

/** The error names the field around it and a similar known name, never the unknown name itself. */
const wrongNames: WrongName[] = [
  {
    call: "createKey",
    body: '{"apiId":"cnry","rateLimit":{"limit":7391}}',
    field: "",
    says: "did you mean ratelimit?",
    neverSays: "rateLimit",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","remaning":7391}',
    field: "",
    says: "did you mean remaining?",
    neverSays: "remaning",
  },
  { call: "createKey", body: '{"apiId":"cnry","expire":7391}', field: "", says: "did you mean expires?" },
  { call: "createKey", body: '{"api_id":"cnry"}', field: "", says: "did you mean apiId?", neverSays: "api_id" },
  {
    call: "createKey",
    body: '{"apiId":"cnry","byte_length":7391}',
    field: "",
    says: "did you mean byteLength?",
    neverSays: "byte_length",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","owner_id":"cnry"}',
    field: "",
    says: "did you mean ownerId?",
    neverSays: "owner_id",
  },
  {
    call: "createKey",
    body: '{"apiId":"cnry","REMAINING":7391}',
    field: "",
    says: "did you mean remaining?",
    neverSays: "REMAINING",
  },
  { call: "createKey", body: '{"apiId":"cnry","somethingElse":7391}', field: "", neverSays: "somethingElse" },
  { call: "createKey", body: '{"apiId":"cnry","constructor":"cnry"}', field: "", neverSays: "constructor" },
  { call: "createKey", body: '{"apiId":"cnry","toString":null}', field: "", neverSays: "toString" },
  {
    call: "createKey",
    body: '{"apiId":"cnry","refill":{"ammount":7391}}',
    field: "refill",
    says: "did you mean amount?",
    neverSays: "ammount",
  },
  {
    call: "createKey",
    body: '{"refill":{"carry_over":true}}',
    field: "refill",
    says: "did you mean carryOver?",
    neverSays: "carry_over",
  },
  { call: "createKey", body: '{"ratelimit":{"limits":7391}}', field: "ratelimit", says: "did you mean limit?" },
  { call: "createKey", body: '{"ratelimit":{"window":7391}}', field: "ratelimit", neverSays: "window" },
  { call: "createKey", body: '{"apiId":"cnry","cnry-x1":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","cnry x1":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","cnry😀":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: `{"cnry${"x".repeat(61)}":7391}`, field: "", says: "unknown field" },
  {
    call: "createKey",
    body: '{"apiId":"x","cnry_2AsTXY7ZPJon57xXlwg1iFScToYBEIkW74":1}',
    field: "",
    says: "unknown field",
  },
  { call: "createKey", body: '{"apiId":"x","cnry_x1":{"cnry_x2":"\\u0000"}}', field: "", says: "NUL" },
  {
    call: "createKey",
    body: '{"ratelimit":{"cnry_x1":7391}}',
    field: "ratelimit",
    says: "(known: async, limit, duration)",
  },
  { call: "createKey", body: '{"apiId":"cnry","":7391}', field: "", says: "unknown field" },
  { call: "createKey", body: '{"refill":{"cnry-x1":7391}}', field: "refill", says: "unknown field" },
  { call: "createKey", body: '{"apiId":"cnry","__proto__":{"enabled":true}}', field: "", says: "reserved name" },
  { call: "verifyKey", body: '{"key":"cnry","Key":"cnry"}', field: "", says: "did you mean key?" },
  {
    call: "verifyKey",
    body: '{"key":"cnry","api_id":"cnry"}',
    field: "",
    says: "did you mean apiId?",
    neverSays: "api_id",
  },
  { call: "verifyKey", body: '{"key":"cnry","keyId":"cnry"}', field: "", neverSays: "keyId" },
  { call: "verifyKey", body: '{"key":"x","cnry_x1":7391}', field: "", says: "(known: key, apiId)" },
  { call: "createApi", body: '{"apiId":"cnry","costMax":7391}', field: "", neverSays: "costMax" },
  {
    call: "createApi",
    body: '{"defaults":{"costMax":7391}}',
    field: "defaults",
    says: "(known: prefix, byteLength, ratelimit, remaining, refill)",
    neverSays: "costMax",
  },
  { call: "updateApi", body: '{"defaults":{"rateLimit":7391}}', field: "defaults", says: "did you mean ratelimit?" },
  ...apiIdCalls.map((call): WrongName => ({ call, body: '{"cnry_x1":7391}', field: "", says: "(known: apiId" })),
  ...keyIdCalls.flatMap((call): WrongName[] => [
    { call, body: '{"cnry_x1":7391}', field: "", says: "(known: keyId" },
    { call, body: '{"identity":"cnry"}', field: "", says: "(known: keyId" },
    { call, body: '{"key_id":"cnry"}', field: "", says: "did you mean keyId?", neverSays: "key_id" },
  ]),
];

/** What JSON.stringify makes of NaN. Once it was taken for "absent", and issued keys without a limit. */
const nulls: [CallName, string][] = [
  ...["apiId", "prefix", "byteLength", "ownerId", "remaining", "refill", "refill.interval", "refill.amount"],
  ...["refill.carryOver", "ratelimit", "ratelimit.async", "ratelimit.limit", "ratelimit.duration", "name", "meta"],
  ...["expires", "enabled"],
].map((field) => ["createKey", field]);
nulls.push(["verifyKey", "key"], ["verifyKey", "apiId"]);
for (const call of keyIdCalls) nulls.push([call, "keyId"]);
for (const call of apiIdCalls) nulls.push([call, "apiId"]);
for (const field of ["apiId", "name", "defaults", "defaults.prefix", "defaults.remaining"]) {
  nulls.push(["createApi", field]);
}
nulls.push(["createKey", "useDefaults"], ["updateApi", "defaults.prefix"], ["updateApi", "ifVersion"]);
nulls.push(["listApis", "limit"], ["listApis", "cursor"]);
for (const field of ["apiId", "ownerId", "enabled", "expiresBefore", "search", "limit", "cursor"]) {
  nulls.push(["listKeys", field]);
}
for (const field of ["targetId", "rootKeyId", "method", "since", "until", "limit", "cursor"]) {
  nulls.push(["listEvents", field]);
}

export const types: BadRequest[] = [
  ...nulls.map(([call, field]) =>
    badJson(`${field} is null`, call, field, `${bodyWith(field, "null").slice(0, -1)},"cnry":7391}`, {
      says: `${field}: must not be null`,
    }),
  ),
  ...wrongTypes.flatMap(([call, field, values]) =>
    values.map((value) => badJson(`${field} is ${value}`, call, field, bodyWith(field, value))),
  ),
  ...wrongNames.map(({ call, body, field, ...rest }) => badJson(`unknown name in ${body}`, call, field, body, rest)),
];

/** `refill.amount` and a value become `{"refill":{"amount":value}}`. */
function bodyWith(field: string, value: string): string {
  return field
    .split(".")
    .reverse()
    .reduce((inner, name) => `{"${name}":${inner}}`, value);
}
