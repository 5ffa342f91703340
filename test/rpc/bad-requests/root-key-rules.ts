import type { JsonObject } from "@bufbuild/protobuf";
import { type CallName, encode, rootKeyIdCalls } from "../protocols.ts";
import {
  type BadRequest,
  bad,
  badJson,
  bodyWithout,
  broken,
  digitsCanary,
  goodBodyOf,
  protoProtocols,
  textCanary,
} from "./bad-request.ts";
import { badCursorsOf, expiries, long } from "./rules.ts";

/* Messages about root keys that can be read but break a rule. */

const digits = Number(digitsCanary);

/** A message that is wrong in binary only. */
function inBinary(name: string, call: CallName, field: string, json: JsonObject): BadRequest {
  const says = "must not be empty";
  return bad(name, call, { on: protoProtocols, field, says, body: (protocol) => encode(protocol, call, json) });
}

const manyTexts = Array.from({ length: 101 }, () => textCanary);

/** Of `createRootKey` and `updateRootKey` alike. */
const badRootKeys: [name: string, field: string, fields: JsonObject][] = [
  ["an empty name", "name", { name: "" }],
  ["a name of 256 characters", "name", { name: long(256) }],
  ["a permission that is not known", "permissions[1]", { permissions: ["keys.read", textCanary] }],
  ["a permission in capitals", "permissions[0]", { permissions: ["KEYS.READ", textCanary] }],
  ["a pattern that covers nothing", "permissions[0]", { permissions: [`${textCanary}.*`] }],
  ["an empty permission", "permissions[0]", { permissions: ["", textCanary] }],
  ["a permission of 65 characters", "permissions[0]", { permissions: [long(65)] }],
  ["101 permissions", "permissions", { permissions: manyTexts }],
  ["an empty apiId", "apiIds[1]", { apiIds: [textCanary, ""] }],
  ["an apiId of 256 characters", "apiIds[0]", { apiIds: [long(256)] }],
  ["101 apiIds", "apiIds", { apiIds: manyTexts }],
  ["expires 0", "expires", { expires: 0 }],
  ["expires as a fraction", "expires", { expires: digits + 0.5 }],
  ["expires after the year 9999", "expires", { expires: 253402300800000 }],
];

export const rootKeyRules: BadRequest[] = [
  ...(["createRootKey", "updateRootKey"] satisfies CallName[]).flatMap((call) => [
    ...badRootKeys.map(([name, field, fields]) => broken(name, call, field, { ...goodBodyOf(call), ...fields })),
    badJson("no apiIds in the list", call, "apiIds", JSON.stringify({ ...goodBodyOf(call), apiIds: [] }), {
      says: "must not be empty",
    }),
    badJson(
      "no permissions in the list",
      call,
      "permissions",
      JSON.stringify({ ...goodBodyOf(call), permissions: [] }),
      {
        says: "must not be empty",
      },
    ),
  ]),
  broken("no permissions", "createRootKey", "permissions", bodyWithout("createRootKey", "permissions")),
  // In binary an empty list of APIs cannot be told from an absent one, which means all of them.
  inBinary("no apiIds and no allApis", "createRootKey", "apiIds", { name: textCanary, permissions: ["keys.read"] }),
  inBinary("a mask with apiIds, which are empty", "updateRootKey", "apiIds", {
    rootKeyId: textCanary,
    updateMask: "apiIds",
  }),
  inBinary("a mask with apiIds, which are empty, and allApis outside of it", "updateRootKey", "apiIds", {
    rootKeyId: textCanary,
    name: textCanary,
    allApis: true,
    updateMask: "apiIds,name",
  }),
  ...expiries.map(([name, expires]) =>
    broken(`expires: ${name}`, "createRootKey", "expires", { ...goodBodyOf("createRootKey"), expires }),
  ),
  broken("nothing to change", "updateRootKey", "", { rootKeyId: textCanary }, { says: "send at least one of" }),
  broken("ifVersion 0", "updateRootKey", "ifVersion", { ...goodBodyOf("updateRootKey"), ifVersion: 0 }),
  ...[0, -digits, 101, 2147483647].map((limit) => broken(`limit ${limit}`, "listRootKeys", "limit", { limit })),
  ...badCursorsOf("rootKeys").map(([name, cursor]) => broken(`a cursor ${name}`, "listRootKeys", "cursor", { cursor })),
  ...rootKeyIdCalls.flatMap((call) => [
    broken("no rootKeyId", call, "rootKeyId", bodyWithout(call, "rootKeyId")),
    broken("empty rootKeyId", call, "rootKeyId", { ...goodBodyOf(call), rootKeyId: "" }),
    broken("rootKeyId of 65 characters", call, "rootKeyId", { ...goodBodyOf(call), rootKeyId: long(65) }),
  ]),
];
