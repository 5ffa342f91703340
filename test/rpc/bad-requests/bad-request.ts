import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import type { ErrorCode } from "../../../src/rpc/api-error.ts";
import type { HeaderValues } from "../exchange.ts";
import { type CallName, encode, frame, type Protocol, protocols } from "../protocols.ts";

/* Values that are sent hold one of the marks, texts the first and numbers the second; no answer and no log line may. */
export const marks = ["cnry", "7391"];
/** Not a plain name either, because of its dash. */
export const textCanary = "cnry-x1";
export const digitsCanary = "7391";

/** What the test has at hand when it sends. */
export interface Setup {
  readonly rootKey: string;
  readonly issuedKey: string;
}

/** One bad request, to be refused alike over each of its protocols. */
export interface BadRequest {
  readonly name: string;
  readonly on: readonly Protocol[];
  readonly call: CallName;
  body(protocol: Protocol): Uint8Array;
  /** Put over the usual headers. */
  readonly headers: HeaderValues | ((setup: Setup) => HeaderValues);
  readonly method: string;
  /** Instead of the method's own path. */
  readonly path?: string;
  /** Refused before it is clear that a protocol of ours is spoken, so in the gateway's form over every one. */
  readonly beforeProtocol: boolean;

  readonly code: ErrorCode;
  /** Where it is not the one that the code has everywhere. */
  readonly rpc?: Code;
  /** JSON path of the field at fault; empty for the request as a whole, undefined where no field is. */
  readonly field?: string;
  /** Something the message has to say. */
  readonly says?: string;
  /** Something the message must not repeat, where the value cannot hold a canary. */
  readonly neverSays?: string;
}

export const jsonProtocols = protocols.filter(({ codec }) => codec === "json");
export const protoProtocols = protocols.filter(({ codec }) => codec === "proto");
export const gatewayProtocols = protocols.filter(({ name }) => name.startsWith("json"));
export const rpcProtocols = protocols.filter(({ name }) => !name.startsWith("json"));

/** Of methods that take more than the id of a key. */
const ownBodies: Partial<Record<CallName, JsonObject>> = {
  createKey: { apiId: textCanary },
  verifyKey: { key: textCanary },
  updateKey: { keyId: textCanary, name: textCanary },
  limit: { namespace: textCanary, identifier: textCanary, limit: 7391, duration: 60_000 },
  listEvents: { targetId: textCanary },
  getSpending: { keyIds: [textCanary], start: 3_600_000, end: 7_200_000 },
  listKeys: { apiId: textCanary },
  updateRemaining: { keyId: textCanary, op: "set", value: 5 },
  importKeys: { apiId: textCanary, keys: [{ digest: "0".repeat(64) }] },
  createApi: { apiId: textCanary },
  getApi: { apiId: textCanary },
  listApis: { cursor: textCanary },
  updateApi: { apiId: textCanary, name: textCanary },
  deleteApi: { apiId: textCanary },
  createOwner: { ownerId: textCanary },
  getOwner: { ownerId: textCanary },
  listOwners: { cursor: textCanary },
  updateOwner: { ownerId: textCanary, enabled: true },
  updateOwnerRemaining: { ownerId: textCanary, op: "set", value: 5 },
  deleteOwner: { ownerId: textCanary },
  createRootKey: { name: textCanary, permissions: ["keys.read"], allApis: true },
  listRootKeys: { cursor: textCanary },
  updateRootKey: { rootKeyId: textCanary, name: textCanary },
  revokeRootKey: { rootKeyId: textCanary },
};

export function goodBodyOf(call: CallName): JsonObject {
  return ownBodies[call] ?? { keyId: textCanary };
}

/** Without one field, such as the id of a key. */
export function bodyWithout(call: CallName, field: string): JsonObject {
  const { [field]: _, ...rest } = goodBodyOf(call);
  return rest;
}

type Rest = Partial<Pick<BadRequest, "says" | "neverSays" | "code" | "rpc" | "headers">>;

/** A message that breaks a rule of its fields, in every encoding. */
export function broken(name: string, call: CallName, field: string, json: JsonValue, rest: Rest = {}): BadRequest {
  return bad(name, call, { on: protocols, field, body: (protocol) => encode(protocol, call, json), ...rest });
}

/** A body that only JSON can get wrong in this way. */
export function badJson(
  name: string,
  call: CallName,
  field: string,
  text: string | Uint8Array,
  rest: Rest = {},
): BadRequest {
  const bytes = Buffer.from(text as string);
  return bad(name, call, { on: jsonProtocols, field, body: ({ framed }) => (framed ? frame(bytes) : bytes), ...rest });
}

/** Bytes that are no protobuf message, or no message of ours. */
export function badProto(name: string, field: string, bytes: Uint8Array, rest: Rest = {}): BadRequest {
  const body = ({ framed }: Protocol) => (framed ? frame(bytes) : bytes);
  return bad(name, "createKey", { on: protoProtocols, field, body, ...rest });
}

/** Anything else that is wrong about a request whose message is good. */
export function bad(name: string, call: CallName, rest: Partial<BadRequest>): BadRequest {
  return {
    name: `${call}: ${name}`,
    on: protocols,
    call,
    body: (protocol) => encode(protocol, call, goodBodyOf(call)),
    headers: {},
    method: "POST",
    beforeProtocol: false,
    code: "BAD_REQUEST",
    ...rest,
  };
}
