import { Code } from "@connectrpc/connect";
import { apiIdCalls, encode, keyIdCalls, ownerIdCalls, rootCalls, rootKeyIdCalls } from "../protocols.ts";
import { type BadRequest, bad, broken, goodBodyOf, type Setup, textCanary } from "./bad-request.ts";

/* Requests without permission, for keys that do not exist, or repeated with changes. */

const wrongAuthorizations: [string, (setup: Setup) => string | undefined][] = [
  ["none", () => undefined],
  ["an empty one", () => ""],
  ["only the scheme", () => "Bearer"],
  ["the scheme and a space", () => "Bearer "],
  ["Basic", ({ rootKey }) => `Basic ${Buffer.from(`cnry:${rootKey}`).toString("base64")}`],
  ["the root key without a scheme", ({ rootKey }) => rootKey],
  ["a wrong key", () => `Bearer ${textCanary.padEnd(40, "x")}`],
  ["the root key but for its last character", ({ rootKey }) => `Bearer ${rootKey.slice(0, -1)}`],
  ["the root key and one character", ({ rootKey }) => `Bearer ${rootKey}x`],
  ["the root key in capitals", ({ rootKey }) => `Bearer ${rootKey.toUpperCase()}`],
  ["the root key twice", ({ rootKey }) => `Bearer ${rootKey} ${rootKey}`],
  ["the root key twice, with a comma", ({ rootKey }) => `Bearer ${rootKey},${rootKey}`],
  ["an issued key", ({ issuedKey }) => `Bearer ${issuedKey}`],
];

const badIdempotencyKeys: [string, string | string[]][] = [
  ["an empty Idempotency-Key", ""],
  ["an Idempotency-Key with a space", "cnry x"],
  ["an Idempotency-Key of 256 characters", textCanary.padEnd(256, "x")],
  ["an Idempotency-Key beyond ASCII", "cnry\xe9"],
  ["two Idempotency-Keys", ["cnry-1", "cnry-2"]],
];

/** The test has created another key under it before, for the same API. */
export const usedIdempotencyKey = "cnry-used-before";

const notFound = { code: "NOT_FOUND" } as const;
const unauthorized = { code: "UNAUTHORIZED" } as const;

export const callers: BadRequest[] = [
  ...wrongAuthorizations.flatMap(([name, authorization]) => {
    const headers = (setup: Setup) => ({ authorization: authorization(setup) });
    return rootCalls.map((call) => bad(`Authorization: ${name}`, call, { headers, ...unauthorized }));
  }),
  bad("no Authorization, and nothing is told of the bad message", "createKey", {
    headers: { authorization: undefined },
    body: (protocol) => encode(protocol, "createKey", { remaining: -7391 }),
    ...unauthorized,
  }),
  ...badIdempotencyKeys.map(([name, value]) =>
    bad(name, "createKey", { headers: { "idempotency-key": value }, field: "Idempotency-Key" }),
  ),
  bad("an Idempotency-Key used for another request", "createKey", {
    headers: { "idempotency-key": usedIdempotencyKey },
    code: "CONFLICT",
  }),
  ...apiIdCalls.map((call) =>
    broken(
      "an API that is not there",
      call,
      "",
      { ...goodBodyOf(call), apiId: `${textCanary} of nobody` },
      { code: "NOT_FOUND", says: "there is no such API" },
    ),
  ),
  broken("an API that is there", "createApi", "", { apiId: textCanary }, { code: "CONFLICT" }),
  broken("an API that has keys", "deleteApi", "", { apiId: textCanary }, { code: "CONFLICT", says: "has keys" }),
  broken(
    "an API of another version",
    "updateApi",
    "",
    { apiId: textCanary, name: textCanary, ifVersion: 7391 },
    { code: "CONFLICT", rpc: Code.Aborted },
  ),
  ...ownerIdCalls.map((call) =>
    broken(
      "an owner that is not there",
      call,
      "",
      { ...goodBodyOf(call), ownerId: `${textCanary} of nobody` },
      { code: "NOT_FOUND", says: "there is no such owner" },
    ),
  ),
  broken("an owner that is there", "createOwner", "", { ownerId: textCanary }, { code: "CONFLICT", says: "exists" }),
  broken(
    "an owner of another version",
    "updateOwner",
    "",
    { ownerId: textCanary, enabled: false, ifVersion: 7391 },
    { code: "CONFLICT", rpc: Code.Aborted },
  ),
  broken(
    "a counter that an owner has not",
    "updateOwnerRemaining",
    "",
    { ownerId: textCanary, op: "increment", value: 7391 },
    { code: "CONFLICT", rpc: Code.FailedPrecondition, says: "has no counter" },
  ),
  ...rootKeyIdCalls.flatMap((call) =>
    ["root_0000000000000000000000", textCanary].map((rootKeyId) =>
      broken(`the root key ${rootKeyId}, which is not there`, call, "", { ...goodBodyOf(call), rootKeyId }, notFound),
    ),
  ),
  ...keyIdCalls.flatMap((call) => {
    const unknown = { ...goodBodyOf(call), keyId: "key_0000000000000000000000" };
    return [
      broken("a key that is not there", call, "", unknown, notFound),
      broken("what is no id", call, "", { ...goodBodyOf(call), keyId: textCanary }, notFound),
    ];
  }),
];
