import { routes } from "../../../gen/latchkey/v1/services.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import type { RawRequest } from "./raw-exchange.ts";

/* Calls of methods that need a root key, as bytes. No answer holds anything that is made at random. */

export function managingCorpus(secrets: Readonly<Record<string, string>>): RawRequest[] {
  const paths = routes.filter(({ verb }) => verb === "POST").map(({ path }) => path.slice("/v1/".length));
  const update = (name: string) => call("keys.updateKey", { keyId: "key_of_expiring", name });
  return [
    ...paths.flatMap((path) => [
      request(`${path} without a root key`, call(path, {}, [])),
      request(`${path} with an unknown field`, call(path, { unknown: 1 })),
    ]),
    ...Object.entries(calls(secrets)).flatMap(([path, bodies]) =>
      bodies.map((body) => request(`${path} ${JSON.stringify(body)}`, call(path, body))),
    ),
    ...authorizations.map((lines) => request(`with ${JSON.stringify(lines)}`, call("keys.getKey", plain, lines))),
    ...idempotencyKeys.flatMap((lines) =>
      ["a", "a", "b"].map((name) => {
        const body = { keyId: "key_of_latin", name };
        return request(`name ${name} with ${JSON.stringify(lines)}`, call("keys.updateKey", body, [valid, ...lines]));
      }),
    ),
    request("three in a row", update("first") + update("second") + update("third")),
    request("one in two pieces", update("whole"), 150),
    request(
      "between verifications",
      verify(secrets.expiring) + update("new") + verify(secrets.expiring) + call("keys.nothing", {}),
    ),
  ];
}

const valid = `Authorization: Bearer ${testRootKey}`;
const plain = { keyId: "key_of_plain" };

function calls(secrets: Readonly<Record<string, string>>): Record<string, readonly unknown[]> {
  return {
    "keys.getKey": [
      plain,
      { keyId: "key_of_none" },
      { key: secrets.unicodeMeta },
      { key: secrets.longMeta },
      [],
      "",
      1,
    ],
    "keys.explainKey": [
      plain,
      { keyId: "key_of_none" },
      { key: secrets.unknown },
      { ...plain, remaining: { cost: -1 } },
    ],
    "keys.whoami": [{ key: secrets.everything }, { key: secrets.unknown }],
    "keys.listKeys": [{ apiId: "api_1" }, { apiId: "api_1", limit: 0 }, { ownerId: "owner", enabled: true }],
    "keys.updateKey": [
      { keyId: "key_of_disabled", enabled: true, name: null, meta: { é: ["漢", "😀"] } },
      { keyId: "key_of_disabled", ifVersion: 1, name: "late" },
      { keyId: "key_of_disabled", meta: { long: "x".repeat(20_000) } },
      { keyId: "key_of_none", name: "a" },
      { keyId: "key_of_disabled", name: 5 },
    ],
    "keys.updateRemaining": [
      { keyId: "key_of_exhausted", op: "set", value: 5 },
      { keyId: "key_of_exhausted", op: "decrement", value: 6 },
    ],
    "keys.deleteKey": [{ keyId: "key_of_text127" }, { keyId: "key_of_text127" }],
    "apis.getApi": [{ apiId: "api_1" }, { apiId: "none" }],
    "apis.updateApi": [{ apiId: "api_1", name: "né" }],
    "apis.deleteApi": [{ apiId: "api_1" }],
    "owners.getOwner": [{ ownerId: "none" }, { ownerId: "" }],
    "owners.listOwners": [{}, { limit: 0 }],
    "owners.updateRemaining": [{ ownerId: "none", op: "set", value: 5 }],
  };
}

const authorizations = [
  [`authorization:Bearer ${testRootKey}`],
  [`AUTHORIZATION:   bearer   ${testRootKey}`],
  [`${valid} `],
  [`Authorization:\tBearer ${testRootKey}`],
  [`Authorization: Bearer\t${testRootKey}`],
  [valid, valid],
  [valid, "Authorization: Bearer wrong"],
  ["Authorization: Bearer wrong", valid],
  ["Authorization:", valid],
  [`X-Authorization: Bearer ${testRootKey}`],
  [`X-A: authorization: Bearer ${testRootKey}`],
  [`Proxy-Authorization: Bearer ${testRootKey}`],
  [`X-Authorization: Bearer wrong`, valid],
  [`Authorization: Basic ${testRootKey}`],
  [`Authorization: ${testRootKey}`],
  [`Authorization: Bearer ${testRootKey}x`],
  [`Authorization: Bearer ${testRootKey.slice(0, -1)}\xe9`],
  ["Authorization: Bearer"],
  ["Authorization:"],
  ["Authorization: wrong"],
];

const idempotencyKeys = [
  ["Idempotency-Key: one"],
  ["IDEMPOTENCY-KEY:   two"],
  ["idempotency-key:three "],
  ["Idempotency-Key: in two"],
  ["Idempotency-Key: a", "Idempotency-Key: b"],
  ["Idempotency-Key:"],
  [`Idempotency-Key: ${"k".repeat(255)}`],
  [`Idempotency-Key: ${"k".repeat(256)}`],
  ["Idempotency-Key: \xe9"],
];

const last = Buffer.from("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

function request(name: string, text: string, cutAt = text.length): RawRequest {
  const bytes = Buffer.from(text, "latin1");
  const pieces = [bytes.subarray(0, cutAt), bytes.subarray(cutAt)].filter(({ length }) => length > 0);
  return { name: `managing: ${name}`, over: "bytes", chunks: [...pieces, last] };
}

function call(path: string, body: unknown, lines: readonly string[] = [valid]): string {
  const bytes = Buffer.from(JSON.stringify(body)).toString("latin1");
  const head = [`POST /v1/${path} HTTP/1.1`, "Host: a", ...lines, "Content-Type: application/json"];
  return `${head.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes}`;
}

function verify(key: string | undefined): string {
  return call("keys.verifyKey", { key }, []);
}
