import {
  type DescMethod,
  type DescService,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { createClient as createConnectClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { ApisService } from "../../gen/latchkey/v1/apis_pb.js";
import { AuditService } from "../../gen/latchkey/v1/audit_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { OwnersService } from "../../gen/latchkey/v1/owners_pb.js";
import { RatelimitsService } from "../../gen/latchkey/v1/ratelimits_pb.js";
import { RootKeysService } from "../../gen/latchkey/v1/root_keys_pb.js";
import type { IdempotentCallOptions, KeysClient, LatchkeyClient } from "../../src/sdk/index.ts";
import { rawClient } from "./raw-client.ts";
import { atTestEnd } from "./test-end.ts";

/** Every way to call the service, each behind the SDK's interface: JSON in, JSON out, errors thrown. */
export const clientKinds = ["sdk", "connect-json", "connect-binary", "grpc", "grpc-web", "grpc-js"] as const;
export type ClientKind = (typeof clientKinds)[number];

/** A client of that kind. Errors of the RPC kinds are ConnectError or grpc.ServiceError as the library made them. */
export function latchkeyOf(kind: ClientKind, baseUrl: string, rootKey: string): LatchkeyClient {
  if (kind === "sdk") return rawClient({ baseUrl, rootKey });
  const call = kind === "grpc-js" ? grpcJsCaller(baseUrl, rootKey) : connectCaller(transportOf(kind, baseUrl), rootKey);
  const groupOf = (service: DescService) =>
    Object.fromEntries(
      service.methods.map((method) => [
        method.localName,
        async (request: object, options?: IdempotentCallOptions) => {
          const answer = await call(method, fromJson(method.input, request as JsonValue), options);
          return toJson(method.output, answer, { alwaysEmitImplicit: true });
        },
      ]),
    );
  return {
    apis: groupOf(ApisService),
    audit: groupOf(AuditService),
    keys: groupOf(KeysService),
    owners: groupOf(OwnersService),
    ratelimits: groupOf(RatelimitsService),
    rootKeys: groupOf(RootKeysService),
  } as unknown as LatchkeyClient;
}

/** Its methods on keys. */
export function clientOf(kind: ClientKind, baseUrl: string, rootKey: string): KeysClient {
  return latchkeyOf(kind, baseUrl, rootKey).keys;
}

type Caller = (method: DescMethod, request: Message, options?: IdempotentCallOptions) => Promise<Message>;

function transportOf(kind: Exclude<ClientKind, "sdk" | "grpc-js">, baseUrl: string): Transport {
  switch (kind) {
    case "connect-json":
      return createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false });
    case "connect-binary":
      return createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true });
    case "grpc":
      return createGrpcTransport({ baseUrl });
    case "grpc-web":
      return createGrpcWebTransport({ baseUrl, httpVersion: "1.1" });
  }
}

function connectCaller(transport: Transport, rootKey: string): Caller {
  return (method, request, options) => {
    const client = createConnectClient(method.parent as typeof KeysService, transport);
    const headers = headersOf(rootKey, options);
    const invoke = client[method.localName as "verifyKey"] as unknown as (
      request: Message,
      options: object,
    ) => Promise<Message>;
    return invoke(request, { headers });
  };
}

function grpcJsCaller(baseUrl: string, rootKey: string): Caller {
  const client = new grpc.Client(new URL(baseUrl).host, grpc.credentials.createInsecure());
  atTestEnd(() => client.close());
  return (method, request, options) =>
    new Promise((resolve, reject) => {
      const metadata = new grpc.Metadata();
      for (const [name, value] of Object.entries(headersOf(rootKey, options))) metadata.set(name, value);
      client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: Message) => Buffer.from(toBinary(method.input, message)),
        (bytes: Buffer) => fromBinary(method.output, bytes),
        request,
        metadata,
        (error, answer) => (error ? reject(error) : resolve(answer as Message)),
      );
    });
}

function headersOf(rootKey: string, options?: IdempotentCallOptions): Record<string, string> {
  return {
    authorization: `Bearer ${rootKey}`,
    ...(options?.idempotencyKey !== undefined && { "idempotency-key": options.idempotencyKey }),
  };
}
