import type { JsonObject } from "@bufbuild/protobuf";
import { type BadRequest, badJson, broken, textCanary } from "./bad-request.ts";
import { long } from "./rules.ts";

/* Permissions, addresses and limits that break a rule. */

const limit = { name: "a", limit: 7391, duration: 60_000 };
const limits = (...given: JsonObject[]) => ({ ratelimits: given.map((each) => ({ ...limit, ...each })) });

/** Of `createKey`, `importKeys` and `updateKey` alike. */
const badLists: [name: string, field: string, fields: JsonObject][] = [
  ["101 permissions", "permissions", { permissions: Array.from({ length: 101 }, () => textCanary) }],
  ["an empty permission", "permissions[1]", { permissions: ["a", ""] }],
  ["a permission of 129 characters", "permissions[0]", { permissions: [long(129)] }],
  ["a permission with a space", "permissions[0]", { permissions: [`a ${textCanary}`] }],
  ["a permission with a star in it", "permissions[0]", { permissions: [`${textCanary}*`] }],
  ["a permission that begins with a star", "permissions[0]", { permissions: [`*.${textCanary}`] }],
  ["a permission with a line end", "permissions[0]", { permissions: [`${textCanary}\n`] }],
  ["a permission beyond ASCII", "permissions[0]", { permissions: [`${textCanary}é`] }],
  ["51 addresses", "ipAllow", { ipAllow: Array.from({ length: 51 }, () => "::1") }],
  ["an empty address", "ipAllow[0]", { ipAllow: [""] }],
  ["a host", "ipAllow[1]", { ipAllow: ["::1", `${textCanary}.example`] }],
  ["an address with a port", "ipAllow[0]", { ipAllow: ["203.0.113.73:7391"] }],
  ["a range with bits after its prefix", "ipAllow[0]", { ipAllow: ["203.0.113.73/24"] }],
  ["a prefix of 33 bits", "ipAllow[0]", { ipAllow: ["203.0.113.73/33"] }],
  ["an address with a zone", "ipAllow[0]", { ipAllow: [`fe80::1%${textCanary}`] }],
  ["9 limits", "ratelimits", limits(...Array.from({ length: 9 }, (_, i) => ({ name: `${textCanary}${i}` })))],
  ["a name of a limit twice", "ratelimits", limits({ name: textCanary }, {}, { name: textCanary })],
  ["a limit without a name", "ratelimits[0].name", limits({ name: "" })],
  ["a limit with a name of 65 characters", "ratelimits[1].name", limits({}, { name: long(65) })],
  ["a limit with a slash in its name", "ratelimits[0].name", limits({ name: `${textCanary}/a` })],
  ["a limit with a line end in its name", "ratelimits[0].name", limits({ name: `${textCanary}\n` })],
  ["a limit below 0 with a name", "ratelimits[0].limit", limits({ limit: -7391 })],
  ["a limit with a short window", "ratelimits[0].duration", limits({ duration: 999 })],
  ["a limit with a long window", "ratelimits[0].duration", limits({ duration: 2_592_000_001 })],
  ["a bound on costs of 0", "costMax", { costMax: 0 }],
  ["a bound on costs below 0", "costMax", { costMax: -7391 }],
  ["a range by its ends", "ipAllow[0]", { ipAllow: ["203.0.113.73-203.0.113.91"] }],
];

const badQueries: [name: string, query: string, says: string][] = [
  ["that is empty", "", "at least 1"],
  ["that ends early", `${textCanary} AND`, `at character ${textCanary.length + 5}`],
  ["with two permissions side by side", `${textCanary} ${textCanary}`, `at character ${textCanary.length + 2}`],
  ["with a star", `${textCanary}.*`, `at character ${textCanary.length + 2}`],
  ["that opens and does not close", `(${textCanary}`, `at character ${textCanary.length + 2}`],
  [
    "nested 11 deep",
    `${"(".repeat(11)}${textCanary}${")".repeat(11)}`,
    "nested at most 10 deep; it is deeper at character 11",
  ],
  ["of 51 permissions", `${"a OR ".repeat(50)}${textCanary}`, "at most 50 permissions; it has more at character 251"],
  ["of 1001 characters", `${textCanary}${" ".repeat(1001 - textCanary.length)}`, ""],
];

const notEmpty = "must not be empty";

const digest = "0".repeat(64);

export const permissionRules: BadRequest[] = [
  ...badLists.flatMap(([name, field, fields]) => [
    broken(name, "createKey", field, { apiId: textCanary, ...fields }),
    broken(name, "updateKey", field, { keyId: textCanary, ...fields }),
    broken(name, "importKeys", `keys[0].${field}`, { apiId: textCanary, keys: [{ digest, ...fields }] }),
  ]),
  // In a creation the other lists are absent where they are empty.
  badJson("no ipAllow in the list", "createKey", "ipAllow", '{"apiId":"cnry","ipAllow":[]}', { says: notEmpty }),
  badJson(
    "no ipAllow in the list",
    "importKeys",
    "keys[0].ipAllow",
    JSON.stringify({ apiId: textCanary, keys: [{ digest, ipAllow: [] }] }),
    { says: notEmpty },
  ),
  ...["permissions", "ipAllow", "ratelimits"].map((field) =>
    badJson(`no ${field} in the list`, "updateKey", field, `{"keyId":"cnry","${field}":[]}`, { says: notEmpty }),
  ),
  // In an update, 0 in binary is a limit that stays as it is.
  broken("a limit of 0 with a name", "createKey", "ratelimits[0].limit", {
    apiId: textCanary,
    ...limits({ limit: 0 }),
  }),
  ...badQueries.map(([name, permissions, says]) =>
    broken(`a query ${name}`, "verifyKey", "permissions", { key: textCanary, permissions }, { says }),
  ),
  ...["", "localhost", "203.0.113.73:7391", "203.0.113.73/24", "[::1]", "203.0.113", "f".repeat(65)].map((ip) =>
    broken(`the address '${ip}'`, "verifyKey", "ip", { key: textCanary, ip }, ip === "" ? {} : { neverSays: ip }),
  ),
];
