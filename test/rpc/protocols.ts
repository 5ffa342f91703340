import { type DescMessage, type DescMethod, fromJson, getOption, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import { ApisService } from "../../gen/latchkey/v1/apis_pb.js";
import { AuditService } from "../../gen/latchkey/v1/audit_pb.js";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { public$ } from "../../gen/latchkey/v1/options_pb.js";
import { OwnersService } from "../../gen/latchkey/v1/owners_pb.js";
import { RatelimitsService } from "../../gen/latchkey/v1/ratelimits_pb.js";
import { RootKeysService } from "../../gen/latchkey/v1/root_keys_pb.js";
import { routes, services } from "../../gen/latchkey/v1/services.ts";
import { UsageService } from "../../gen/latchkey/v1/usage_pb.js";
import type { HttpAnswer } from "./exchange.ts";

// Keys have a method of the same name.
const { updateRemaining: updateOwnerRemaining, ...ownerMethods } = OwnersService.method;

const methods = {
  ...ApisService.method,
  ...AuditService.method,
  ...KeysService.method,
  ...ownerMethods,
  updateOwnerRemaining,
  ...RatelimitsService.method,
  ...RootKeysService.method,
  ...UsageService.method,
};
if (Object.keys(methods).length !== services.flatMap((service) => service.methods).length) {
  throw new Error("the methods of a service are missing here, or two have one name");
}

/** The methods of all services. */
export type CallName = keyof typeof methods;

export const calls = Object.keys(methods) as CallName[];

export function callOf(method: DescMethod): CallName {
  return calls.find((call) => (methods[call] as DescMethod) === method) as CallName;
}

/** The methods that only a caller with the root key may call. */
export const rootCalls = calls.filter((call) => !getOption(methods[call], public$));
/** The methods that name a key by its id. */
export const keyIdCalls = calls.filter((call) => "keyId" in methods[call].input.field);
/** The methods that name a root key by its id. */
export const rootKeyIdCalls = calls.filter(
  (call) => call in RootKeysService.method && "rootKeyId" in methods[call].input.field,
);
/** The methods that name an API that exists. */
export const apiIdCalls = calls.filter(
  (call) => call !== "createApi" && call in ApisService.method && call !== "listApis",
);

/** The methods that name an owner that exists. */
export const ownerIdCalls = calls.filter(
  (call) => call !== "createOwner" && methods[call].parent.name === "OwnersService" && call !== "listOwners",
);

/** One protocol that a message can be sent in. */
export interface Protocol {
  readonly name: string;
  readonly http: 1 | 2;
  readonly codec: "json" | "proto";
  readonly framed: boolean;
  readonly contentType: string;
  pathOf(call: CallName): string;
  /** The error in the answer. Undefined if it is a success. */
  readError(answer: HttpAnswer): Refusal | undefined;
}

export interface Refusal {
  /** Our own code. */
  readonly code: string;
  /** The code of the RPC protocol; undefined on the gateway. */
  readonly rpc: Code | undefined;
  readonly message: string;
  readonly requestId: string;
  /** Paths of the violations; undefined on the gateway, which has them in the message only. */
  readonly paths: readonly string[] | undefined;
  /** Everything that the error says, as text. */
  readonly told: string;
}

export const protocols: readonly Protocol[] = [
  gateway("json over HTTP/1.1", 1),
  gateway("json over HTTP/2", 2),
  rpc("connect+json", 1, "json", "application/json", readConnectError),
  rpc("connect+proto", 2, "proto", "application/proto", readConnectError),
  rpc("grpc+json", 2, "json", "application/grpc+json", readGrpcError),
  rpc("grpc", 2, "proto", "application/grpc", readGrpcError),
  rpc("grpc-web+json", 1, "json", "application/grpc-web+json", readGrpcWebError),
  rpc("grpc-web", 2, "proto", "application/grpc-web+proto", readGrpcWebError),
];

export function encode(protocol: Protocol, call: CallName, json: JsonValue): Uint8Array {
  const bytes =
    protocol.codec === "json"
      ? Buffer.from(JSON.stringify(json))
      : toBinary(inputOf(call), fromJson(inputOf(call), json));
  return protocol.framed ? frame(bytes) : bytes;
}

export function inputOf(call: CallName): DescMessage {
  return methods[call].input;
}

/** The envelope of gRPC: a flag, the length, the message. */
export function frame(message: Uint8Array, { flag = 0, length = message.length } = {}): Uint8Array {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

/** The error in the gateway's form. RPC paths use it too, for requests that are not RPC. */
export function readGatewayError({ status, body }: HttpAnswer): Refusal | undefined {
  if (status < 400) return undefined;
  const { code, message, requestId } = JSON.parse(body.toString()).error;
  return { code, rpc: undefined, message, requestId, paths: undefined, told: body.toString() };
}

function gateway(name: string, version: 1 | 2): Protocol {
  const pathOf = (call: CallName) => {
    const method: DescMethod = methods[call];
    return routes.find((route) => route.method === method)?.path ?? "";
  };
  const contentType = "application/json";
  return { name, http: version, codec: "json", framed: false, contentType, pathOf, readError: readGatewayError };
}

function rpc(
  name: string,
  version: 1 | 2,
  codec: Protocol["codec"],
  contentType: string,
  readError: Protocol["readError"],
): Protocol {
  const pathOf = (call: CallName) => `/${methods[call].parent.typeName}/${methods[call].name}`;
  return { name, http: version, codec, framed: contentType.includes("grpc"), contentType, pathOf, readError };
}

function readConnectError({ status, body, headers }: HttpAnswer): Refusal | undefined {
  if (status < 400) return undefined;
  return toRefusal(errorFromJsonBytes(body, headers, new ConnectError("unreadable", Code.Unknown)), body.toString());
}

function readGrpcError({ headers, trailers }: HttpAnswer): Refusal | undefined {
  const error = findTrailerError(headers.has("grpc-status") ? headers : trailers);
  return error && toRefusal(error);
}

function readGrpcWebError({ headers, body }: HttpAnswer): Refusal | undefined {
  if (headers.has("grpc-status")) return readGrpcError({ status: 200, headers, body, trailers: headers });
  const afterMessage = body[0] === 0 ? 5 + body.readUInt32BE(1) : 0;
  if (body[afterMessage] !== trailerFlag) throw new Error("the answer has no trailers");
  const error = findTrailerError(trailerParse(body.subarray(afterMessage + 5)));
  return error && toRefusal(error);
}

function toRefusal(error: ConnectError, text = ""): Refusal {
  const details = error.findDetails(ErrorDetailSchema);
  const [detail] = details;
  if (details.length !== 1 || detail === undefined) throw new Error(`an error with ${details.length} details`);
  return {
    code: detail.code,
    rpc: error.code,
    message: error.rawMessage,
    requestId: detail.requestId,
    paths: detail.violations.map(({ path }) => path),
    told: error.rawMessage + error.details.map((each) => Buffer.from(each.value as Uint8Array).toString()) + text,
  };
}
