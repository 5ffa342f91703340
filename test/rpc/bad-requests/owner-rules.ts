import type { JsonObject } from "@bufbuild/protobuf";
import { type CallName, ownerIdCalls } from "../protocols.ts";
import { type BadRequest, badJson, bodyWithout, broken, digitsCanary, goodBodyOf, textCanary } from "./bad-request.ts";
import { badCursorsOf, long } from "./rules.ts";

/* Messages about owners that can be read but break a rule. */

const digits = Number(digitsCanary);
const limit = { name: textCanary, limit: digits, duration: 60_000 };

/** Of `createOwner` and `updateOwner` alike. */
const badOwners: [name: string, field: string, fields: JsonObject][] = [
  ["meta of 16 KiB and a byte", "meta", { meta: { a: long(16_385 - '{"a":""}'.length) } }],
  ["an empty apiId", "apiIds[1]", { apiIds: [textCanary, ""] }],
  ["an apiId of 256 characters", "apiIds[0]", { apiIds: [long(256)] }],
  ["an apiId twice", "apiIds", { apiIds: [textCanary, textCanary] }],
  ["101 apiIds", "apiIds", { apiIds: Array.from({ length: 101 }, (_, at) => `${textCanary} ${at}`) }],
  ["another interval", "refill.interval", { remaining: 5, refill: { interval: textCanary, amount: digits } }],
  ["a refill of less than 0", "refill.amount", { remaining: 5, refill: { interval: "daily", amount: -digits } }],
  ["a limit without a name", "ratelimits[0].name", { ratelimits: [{ limit: digits, duration: digits }] }],
  ["a limit below 0", "ratelimits[0].limit", { ratelimits: [{ ...limit, limit: -digits }] }],
  ["two limits of one name", "ratelimits", { ratelimits: [limit, { ...limit, duration: 1000 }] }],
  ["9 limits", "ratelimits", { ratelimits: Array.from({ length: 9 }, (_, at) => ({ ...limit, name: `cnry${at}` })) }],
];

/** An update cannot say what is left. */
function fieldsFor(call: CallName, { remaining, ...fields }: JsonObject): JsonObject {
  return { ...goodBodyOf(call), ...fields, ...(call === "createOwner" && remaining !== undefined && { remaining }) };
}

export const ownerRules: BadRequest[] = [
  ...(["createOwner", "updateOwner"] satisfies CallName[]).flatMap((call) => [
    ...badOwners.map(([name, field, fields]) => broken(name, call, field, fieldsFor(call, fields))),
    // In a creation, an empty list is an absent one, unless that means all.
    ...(call === "createOwner" ? ["apiIds"] : ["apiIds", "ratelimits"]).map((field) =>
      badJson(`no ${field} in the list`, call, field, JSON.stringify({ ...goodBodyOf(call), [field]: [] }), {
        says: "must not be empty",
      }),
    ),
  ]),
  broken("a refill of 0", "createOwner", "refill.amount", {
    ownerId: textCanary,
    remaining: 5,
    refill: { interval: "daily", amount: 0 },
  }),
  broken("a limit of 0", "createOwner", "ratelimits[0].limit", {
    ownerId: textCanary,
    ratelimits: [{ ...limit, limit: 0 }],
  }),
  broken("another word for its keys", "deleteOwner", "keys", { ownerId: textCanary, keys: textCanary }),
  broken("remaining below 0", "createOwner", "remaining", { ownerId: textCanary, remaining: -digits }),
  broken("a refill without remaining", "createOwner", "refill", {
    ownerId: textCanary,
    refill: { interval: "daily", amount: digits },
  }),
  badJson("remaining, which only updateRemaining changes", "updateOwner", "", `{"ownerId":"cnry","remaining":7391}`, {
    says: "unknown field",
  }),
  broken(
    "nothing to change",
    "updateOwner",
    "",
    { ownerId: textCanary, ifVersion: 5 },
    { says: "send at least one of" },
  ),
  broken("ifVersion 0", "updateOwner", "ifVersion", { ...goodBodyOf("updateOwner"), ifVersion: 0 }),
  broken("another operation", "updateOwnerRemaining", "op", { ownerId: textCanary, op: "multiply", value: digits }),
  broken("a value below 0", "updateOwnerRemaining", "value", { ownerId: textCanary, op: "set", value: -digits }),
  badJson("an increment of null", "updateOwnerRemaining", "value", `{"ownerId":"cnry","op":"increment","value":null}`, {
    says: "can be null with set only",
  }),
  ...[0, -digits, 101, 2147483647].map((limit) => broken(`limit ${limit}`, "listOwners", "limit", { limit })),
  ...badCursorsOf("owners").map(([name, cursor]) => broken(`a cursor ${name}`, "listOwners", "cursor", { cursor })),
  ...(["createOwner", ...ownerIdCalls] satisfies CallName[]).flatMap((call) => [
    broken("no ownerId", call, "ownerId", bodyWithout(call, "ownerId")),
    broken("empty ownerId", call, "ownerId", { ...goodBodyOf(call), ownerId: "" }),
    broken("ownerId of 256 characters", call, "ownerId", { ...goodBodyOf(call), ownerId: long(256) }),
  ]),
];
