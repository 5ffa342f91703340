import type { Encoding } from "../domain/forwarded-call.ts";
import { compressedRefused } from "./api-error.ts";
import type { Protocol } from "./call.ts";
import { invalid } from "./invalid-request.ts";

/** How a unary message is sent with one content type. */
export interface RpcDialect {
  readonly protocol: Protocol;
  readonly needsHttp2: boolean;
  readonly compressionHeader: string;
  readonly timeoutHeader: string;
  readonly timeoutPattern: RegExp;
  /** A body that holds a message without fields. */
  readonly emptyBody: Uint8Array;
  readonly encoding: Encoding;
  /** The message in a body. Throws `InvalidRequest` or `ApiError`. */
  messageIn(body: Uint8Array): Uint8Array;
}

/** The dialect of a media type. Undefined if unary methods do not support it. */
export function dialectOf(mediaType: string): RpcDialect | undefined {
  return dialects.get(mediaType);
}

const frameHeaderLength = 5;

const connectRules = {
  protocol: "connect",
  needsHttp2: false,
  compressionHeader: "content-encoding",
  timeoutHeader: "connect-timeout-ms",
  timeoutPattern: /^\d{1,10}$/,
} as const;
const grpcRules = {
  protocol: "grpc",
  needsHttp2: true,
  compressionHeader: "grpc-encoding",
  timeoutHeader: "grpc-timeout",
  timeoutPattern: /^\d{1,8}[HMSmun]$/,
} as const;
const grpcWebRules = { ...grpcRules, protocol: "grpc-web", needsHttp2: false } as const;

const messageIn = (body: Uint8Array) => body;
const binary = { emptyBody: new Uint8Array(), encoding: "proto", messageIn } as const;
const json = { emptyBody: new TextEncoder().encode("{}"), encoding: "rpcJson", messageIn } as const;
const framedBinary = framed(binary);
const framedJson = framed(json);

const dialects: ReadonlyMap<string, RpcDialect> = new Map<string, RpcDialect>([
  ["application/json", { ...connectRules, ...json }],
  ["application/proto", { ...connectRules, ...binary }],
  ["application/grpc", { ...grpcRules, ...framedBinary }],
  ["application/grpc+proto", { ...grpcRules, ...framedBinary }],
  ["application/grpc+json", { ...grpcRules, ...framedJson }],
  ["application/grpc-web", { ...grpcWebRules, ...framedBinary }],
  ["application/grpc-web+proto", { ...grpcWebRules, ...framedBinary }],
  ["application/grpc-web+json", { ...grpcWebRules, ...framedJson }],
]);

type Codec = Pick<RpcDialect, "emptyBody" | "encoding" | "messageIn">;

/** gRPC puts five bytes in front of a message: a flag for compression, and the message's length. */
function framed({ emptyBody, encoding }: Codec): Codec {
  return { emptyBody: Uint8Array.of(0, 0, 0, 0, emptyBody.length, ...emptyBody), encoding, messageIn: unframe };
}

function unframe(body: Uint8Array): Uint8Array {
  if (body.length < frameHeaderLength) throw invalid("", "holds no whole message");
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  if (view.getUint8(0) !== 0) throw compressedRefused("compressed messages are not accepted");
  const message = body.subarray(frameHeaderLength);
  if (view.getUint32(1) !== message.length) {
    throw invalid("", "is not as long as its frame says, or holds several messages");
  }
  return message;
}
