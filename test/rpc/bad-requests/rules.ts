import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type List, toCursor } from "../../../src/rpc/page-cursor.ts";
import { apiIdCalls, type CallName, keyIdCalls } from "../protocols.ts";
import { type BadRequest, badJson, bodyWithout, broken, digitsCanary, goodBodyOf, textCanary } from "./bad-request.ts";

/* Messages that can be read but break a rule of the proto file, or one that no proto rule can express. */

export const long = (length: number) => textCanary.padEnd(length, "x");
const digits = Number(digitsCanary);

function create(name: string, field: string, fields: JsonObject, neverSays?: string): BadRequest {
  const json = { apiId: textCanary, ...fields };
  return broken(name, "createKey", field, json, neverSays === undefined ? {} : { neverSays });
}

function list(name: string, field: string, fields: JsonObject): BadRequest {
  return broken(name, "listKeys", field, { apiId: textCanary, ...fields });
}

const prefixes: [string, string][] = [
  ["empty", ""],
  ["of 17 characters", "cnry".padEnd(17, "x")],
  ["starting with a digit", `${digitsCanary}a`],
  ["starting with _", "_cnry"],
  ["ending in _", "cnry_"],
  ["with a dash", textCanary],
  ["with a space", "cnry x"],
  ["with a letter beyond ASCII", "cnryé"],
  ["with a line end", "cnry\n"],
];

export const expiries: [string, number][] = [
  ["zero", 0],
  ["negative", -digits],
  ["long past", digits],
  ["past, in January 2025", 1_737_391_000_000],
  ["a fraction", digits + 0.5],
  ["a millisecond after the year 9999", 253402300800000],
  ["the largest safe integer", Number.MAX_SAFE_INTEGER],
  ["beyond 64 bits", digits * 1e15],
  ["beyond every integer", digits * 1e300],
  ["below every integer", -digits * 1e300],
];

const refills: [string, string, JsonObject][] = [
  ["without an interval", "refill.interval", { amount: digits }],
  ["with an empty interval", "refill.interval", { interval: "", amount: digits }],
  ["every week", "refill.interval", { interval: `weekly${textCanary}`, amount: digits }],
  ["in capitals", "refill.interval", { interval: `DAILY${textCanary}`, amount: digits }],
  ["without an amount", "refill.amount", { interval: "daily" }],
  ["of zero", "refill.amount", { interval: "daily", amount: 0 }],
  ["of a negative amount", "refill.amount", { interval: "monthly", amount: -digits }],
  ["of the least amount", "refill.amount", { interval: "monthly", amount: -2147483648 }],
  ["of nothing", "refill.interval", {}],
];

const ratelimits: [string, string, JsonObject][] = [
  ["without a limit", "ratelimit.limit", { duration: digits }],
  ["with limit zero", "ratelimit.limit", { limit: 0, duration: digits }],
  ["with a negative limit", "ratelimit.limit", { limit: -digits, duration: digits }],
  ["without a duration", "ratelimit.duration", { limit: digits }],
  ["shorter than a second", "ratelimit.duration", { limit: digits, duration: 999 }],
  ["longer than 30 days", "ratelimit.duration", { limit: digits, duration: 2592007391 }],
  ["of nothing", "ratelimit.limit", {}],
];

const updates: [name: string, field: string, changes: JsonObject][] = [
  ["an empty ownerId", "ownerId", { ownerId: "" }],
  ["an ownerId of 256 characters", "ownerId", { ownerId: long(256) }],
  ["an empty name", "name", { name: "" }],
  ["a name of 256 characters", "name", { name: long(256) }],
  ["meta of 16 KiB and a byte", "meta", { meta: { a: long(16_385 - '{"a":""}'.length) } }],
  ["meta nested 17 deep", "meta", { meta: nest(17) }],
  ["a moment that is not whole", "expires", { expires: 7391.5 }],
  ["a limit below 0", "ratelimit.limit", { ratelimit: { limit: -digits } }],
  ["a short duration", "ratelimit.duration", { ratelimit: { duration: 999 } }],
  ["a refill of less than 0", "refill.amount", { refill: { amount: -digits } }],
  ["another interval", "refill.interval", { refill: { interval: textCanary, amount: digits } }],
  ["a limit without a name", "ratelimits[0].name", { ratelimits: [{ limit: digits }] }],
  ["a named limit below 0", "ratelimits[0].limit", { ratelimits: [{ name: "cnry", limit: -digits }] }],
];

/** In binary 0 looks like a field that is absent, and stays as it is. */
const zeroes: [call: CallName, field: string, body: string][] = [
  ["updateKey", "ratelimit.limit", '{"keyId":"cnry","ratelimit":{"limit":0,"duration":7391}}'],
  ["updateKey", "refill.amount", '{"keyId":"cnry","refill":{"interval":"daily","amount":0}}'],
  ["updateKey", "refill.interval", '{"keyId":"cnry","refill":{"interval":"","amount":7391}}'],
  ["updateKey", "ratelimits[0].duration", '{"keyId":"cnry","ratelimits":[{"name":"cnry","duration":0}]}'],
  ["updateOwner", "refill.amount", '{"ownerId":"cnry","refill":{"interval":"daily","amount":0}}'],
  ["updateOwner", "ratelimits[0].limit", '{"ownerId":"cnry","ratelimits":[{"name":"cnry","limit":0}]}'],
  ["updateApi", "defaults.ratelimit.limit", '{"apiId":"cnry","defaults":{"ratelimit":{"limit":0}}}'],
  ["updateApi", "defaults.refill.amount", '{"apiId":"cnry","defaults":{"refill":{"amount":0}}}'],
];

const base64url = (text: string) => Buffer.from(text).toString("base64url");

export const badCursorsOf = (list: List): [string, string][] => {
  const good = toCursor(list, "key_0000000000000000000000");
  return [
    ["that is empty", ""],
    ["of 256 characters", base64url(`key_${long(188)}`)],
    ["that is an id", "key_0000000000000000000000"],
    ["that is no base64url", `${good}=`],
    ["with a space", `${good} `],
    ["that was cut short", good.slice(0, -2)],
    ["of another list", toCursor(list === "keys" ? "events" : "keys", "key_0000000000000000000000")],
    ["without its check", base64url("key_0000000000000000000000")],
    ["with an id of other characters", toCursor(list, "key_cnry-x1")],
    ["with a line end", toCursor(list, "key_cnry\n")],
    ["with more than an id", toCursor(list, "key_0000000000000000000000' OR '1'='1")],
    ["with half a character", Buffer.concat([Buffer.from("key_cnry"), Buffer.of(0xe2, 0x82)]).toString("base64url")],
  ];
};

/** Of `createApi` and `updateApi` alike. */
const badApis: [name: string, field: string, fields: JsonObject][] = [
  ["an empty name", "name", { name: "" }],
  ["a name of 256 characters", "name", { name: long(256) }],
  ["a default prefix with a dash", "defaults.prefix", { defaults: { prefix: textCanary } }],
  ["an empty default prefix", "defaults.prefix", { defaults: { prefix: "" } }],
  ["a default byteLength of 15", "defaults.byteLength", { defaults: { byteLength: 15 } }],
  ["a default byteLength that is large", "defaults.byteLength", { defaults: { byteLength: digits } }],
  ["a default remaining below 0", "defaults.remaining", { defaults: { remaining: -digits } }],
  [
    "a default limit below 0",
    "defaults.ratelimit.limit",
    { defaults: { ratelimit: { limit: -digits, duration: digits } } },
  ],
];

/** Of a creation only: an update can leave out what is stored. */
const badNewApis: typeof badApis = [
  ["a default limit of 0", "defaults.ratelimit.limit", { defaults: { ratelimit: { limit: 0, duration: digits } } }],
  ["a default limit without a duration", "defaults.ratelimit.duration", { defaults: { ratelimit: { limit: digits } } }],
  [
    "a default refill of 0",
    "defaults.refill.amount",
    { defaults: { remaining: digits, refill: { interval: "daily", amount: 0 } } },
  ],
  [
    "a default refill without remaining",
    "defaults.refill",
    { defaults: { refill: { interval: "daily", amount: digits } } },
  ],
];

const badApiCursors: [string, string][] = [
  ["that is empty", ""],
  ["of 2049 characters", long(2049)],
  ["that is an id", textCanary],
  ["that is no base64url", `${toCursor("apis", `7391 ${textCanary}`)}=`],
  ["without a moment", toCursor("apis", ` ${textCanary}`)],
  ["without an id", toCursor("apis", "7391 ")],
  ["of moment 0", toCursor("apis", `0 ${textCanary}`)],
  ["of a moment that is no number", toCursor("apis", `1e3 ${textCanary}`)],
  ["of a moment beyond all", toCursor("apis", `7391739173917391 ${textCanary}`)],
  ["with a zero character", toCursor("apis", "7391 cnry\0")],
  ["with an id of 256 characters", toCursor("apis", `7391 ${long(256)}`)],
  ["with half a character", Buffer.concat([Buffer.from("7391 cnry"), Buffer.of(0xe2, 0x82)]).toString("base64url")],
];

const byteLengths = [0, 1, 15, 256, -digits, digits, 2147483647];

/** Of a key to import. */
const digest = "0".repeat(64);

export const rules: BadRequest[] = [
  broken("no apiId", "createKey", "apiId", { ownerId: textCanary }),
  broken("nothing at all", "createKey", "apiId", {}),
  create("empty apiId", "apiId", { apiId: "" }),
  create("apiId of 256 characters", "apiId", { apiId: long(256) }),
  create("empty ownerId", "ownerId", { ownerId: "" }),
  create("ownerId of 256 characters", "ownerId", { ownerId: long(256) }),
  create("empty name", "name", { name: "" }),
  create("name of 256 characters", "name", { name: long(256) }),
  create("negative remaining", "remaining", { remaining: -digits }),
  create("the least remaining", "remaining", { remaining: -2147483648 }, "2147483648"),
  create("refill without remaining", "refill", { refill: { interval: "daily", amount: digits } }),
  create("two fields at once, the first", "apiId", { apiId: "", byteLength: digits }),
  create("two fields at once, the second", "byteLength", { apiId: "", byteLength: digits }),
  ...prefixes.map(([name, prefix]) => create(`prefix ${name}`, "prefix", { prefix })),
  ...byteLengths.map((byteLength) =>
    create(`byteLength ${byteLength}`, "byteLength", { byteLength }, byteLength > 16 ? String(byteLength) : undefined),
  ),
  ...expiries.map(([name, expires]) => create(`expires: ${name}`, "expires", { expires })),
  broken(
    "expires in seconds",
    "createKey",
    "expires",
    { apiId: textCanary, expires: 2_073_910_000 },
    { says: "seconds" },
  ),
  ...refills.map(([name, field, refill]) => create(`refill ${name}`, field, { remaining: digits, refill })),
  ...ratelimits.map(([name, field, ratelimit]) => create(`ratelimit ${name}`, field, { ratelimit })),
  create("meta of 16 KiB and a byte", "meta", { meta: { a: long(16_385 - '{"a":""}'.length) } }),
  create("meta of 16 KiB in characters of three bytes", "meta", { meta: { a: textCanary + "€".repeat(5500) } }),
  create("meta nested 17 deep", "meta", { meta: nest(17) }),

  broken("no key", "verifyKey", "key", { apiId: textCanary }),
  broken("empty key", "verifyKey", "key", { key: "" }, { says: "must not be empty" }),
  broken(
    "a limit of zero, told as such",
    "createKey",
    "ratelimit.limit",
    { apiId: textCanary, ratelimit: { limit: 0, duration: digits } },
    { says: "must not be 0" },
  ),
  broken("key of 16385 characters", "verifyKey", "key", { key: long(16_385) }),
  broken("empty apiId", "verifyKey", "apiId", { key: textCanary, apiId: "" }),
  broken("apiId of 256 characters", "verifyKey", "apiId", { key: textCanary, apiId: long(256) }),
  broken("nothing to change", "updateKey", "", { keyId: textCanary, ifVersion: 5 }, { says: "send at least one of" }),
  broken("ifVersion 0", "updateKey", "ifVersion", { keyId: textCanary, ifVersion: 0, name: textCanary }),
  ...updates.map(([name, field, changes]) =>
    broken(`a change to ${name}`, "updateKey", field, { keyId: textCanary, ...changes }),
  ),
  broken("no apiId and no ownerId", "listKeys", "apiId", { search: textCanary }, { says: "needs apiId or ownerId" }),
  list("an empty apiId", "apiId", { apiId: "" }),
  list("an apiId of 256 characters", "apiId", { apiId: long(256) }),
  list("an empty ownerId", "ownerId", { ownerId: "" }),
  list("an ownerId of 256 characters", "ownerId", { ownerId: long(256) }),
  list("an empty search", "search", { search: "" }),
  list("a search of 256 characters", "search", { search: long(256) }),
  ...[0, -digits, 101, 2147483647].map((limit) => list(`limit ${limit}`, "limit", { limit })),
  ...[0, -digits, digits + 0.5, 253402300800000, digits * 1e15].map((expiresBefore) =>
    list(`expiresBefore ${expiresBefore}`, "expiresBefore", { expiresBefore }),
  ),
  ...badCursorsOf("keys").map(([name, cursor]) => list(`a cursor ${name}`, "cursor", { cursor })),
  ...(["targetId", "rootKeyId", "method"] as const).flatMap((field) => [
    broken(`an empty ${field}`, "listEvents", field, { [field]: "" }),
    broken(`a ${field} of 256 characters`, "listEvents", field, { [field]: long(256) }),
  ]),
  ...(["since", "until"] as const).flatMap((field) =>
    [0, -digits, digits + 0.5, 253402300800000, digits * 1e15].map((moment) =>
      broken(`${field} ${moment}`, "listEvents", field, { method: textCanary, [field]: moment }),
    ),
  ),
  ...[0, -digits, 101].map((limit) => broken(`limit ${limit}`, "listEvents", "limit", { method: textCanary, limit })),
  ...badCursorsOf("events").map(([name, cursor]) =>
    broken(`a cursor ${name}`, "listEvents", "cursor", { method: textCanary, cursor }),
  ),
  broken("another op", "updateRemaining", "op", { keyId: textCanary, op: textCanary, value: 5 }),
  broken("no op", "updateRemaining", "op", { keyId: textCanary, value: 5 }),
  broken("a value below 0", "updateRemaining", "value", { keyId: textCanary, op: "set", value: -7391 }),
  broken("no value", "updateRemaining", "", { keyId: textCanary, op: "set" }, { says: "send at least one of value" }),
  broken("an overlap below 0", "rerollKey", "overlap", { keyId: textCanary, overlap: -7391 }),
  broken("an overlap of more than 90 days", "rerollKey", "overlap", { keyId: textCanary, overlap: 7_776_000_001 }),
  broken("a fraction of an overlap", "rerollKey", "overlap", { keyId: textCanary, overlap: 7391.5 }),
  broken("too few bytes", "rerollKey", "byteLength", { keyId: textCanary, byteLength: 15 }),
  broken("too many bytes", "rerollKey", "byteLength", { keyId: textCanary, byteLength: 256 }),
  broken("no apiId", "importKeys", "apiId", { keys: [{ digest }] }),
  broken("no keys", "importKeys", "keys", { apiId: textCanary, keys: [] }),
  broken("101 keys", "importKeys", "keys", {
    apiId: textCanary,
    keys: Array.from({ length: 101 }, () => ({ digest })),
  }),
  ...["", "abc", `${digest}0`, "g".repeat(64), "A".repeat(42), "A".repeat(45), `${"A".repeat(42)}B`].map((bad) =>
    broken(`the digest '${bad}'`, "importKeys", "keys[1].digest", {
      apiId: textCanary,
      keys: [{ digest }, { digest: bad }],
    }),
  ),
  ...(
    [
      ["a start of 33 characters", "start", { start: long(33) }],
      ["an empty start", "start", { start: "" }],
      ["a refill without remaining", "refill", { refill: { interval: "daily", amount: 7391 } }],
      ["a name of 256 characters", "name", { name: long(256) }],
      ["remaining below 0", "remaining", { remaining: -7391 }],
      ["expires as a fraction", "expires", { expires: 7391.5 }],
      ["a limit of 0", "ratelimit.limit", { ratelimit: { limit: 0, duration: 1000 } }],
    ] as const
  ).map(([name, field, given]) =>
    broken(name, "importKeys", `keys[0].${field}`, { apiId: textCanary, keys: [{ digest, ...given }] }),
  ),
  ...(["getKey", "explainKey"] satisfies CallName[]).flatMap((call) => [
    broken("keyId and key", call, "keyId", { keyId: textCanary, key: textCanary }, { says: "either keyId or key" }),
    broken("empty key", call, "key", { key: "" }),
    broken("key of 16385 characters", call, "key", { key: long(16_385) }),
  ]),
  broken("empty apiId", "createApi", "apiId", { apiId: "", name: textCanary }),
  broken("apiId of 256 characters", "createApi", "apiId", { apiId: long(256) }),
  ...(["createApi", "updateApi"] satisfies CallName[]).flatMap((call) =>
    badApis.map(([name, field, fields]) => broken(name, call, field, { ...goodBodyOf(call), ...fields })),
  ),
  ...badNewApis.map(([name, field, fields]) => broken(name, "createApi", field, { apiId: textCanary, ...fields })),
  ...zeroes.map(([call, field, body]) => badJson(`${field} of nothing`, call, field, body, { says: "must not be" })),
  broken("nothing to change", "updateApi", "", { apiId: textCanary, ifVersion: 5 }, { says: "send at least one of" }),
  broken("ifVersion 0", "updateApi", "ifVersion", { apiId: textCanary, ifVersion: 0, name: textCanary }),
  ...[0, -digits, 101, 2147483647].map((limit) => broken(`limit ${limit}`, "listApis", "limit", { limit })),
  ...badApiCursors.map(([name, cursor]) => broken(`a cursor ${name}`, "listApis", "cursor", { cursor })),
  ...apiIdCalls.flatMap((call) => [
    broken("no apiId", call, "apiId", bodyWithout(call, "apiId")),
    broken("empty apiId", call, "apiId", { ...goodBodyOf(call), apiId: "" }),
    broken("apiId of 256 characters", call, "apiId", { ...goodBodyOf(call), apiId: long(256) }),
  ]),
  ...keyIdCalls.flatMap((call) => [
    broken("no keyId", call, "keyId", bodyWithout(call, "keyId")),
    broken("empty keyId", call, "keyId", { ...goodBodyOf(call), keyId: "" }),
    broken("keyId of 65 characters", call, "keyId", { ...goodBodyOf(call), keyId: long(65) }),
  ]),
];

/** Arrays in objects in arrays, as many levels as asked for, the outermost an object. */
function nest(levels: number): JsonObject {
  let value: JsonValue = textCanary;
  for (let level = levels; level > 1; level--) value = level % 2 === 0 ? [value] : { a: value };
  return { a: value };
}
