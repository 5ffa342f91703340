import { create, type DescMessage, type MessageInitShape, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import type { Route } from "../../gen/latchkey/v1/services.ts";
import type { HotMethod } from "../codec/codec-runtime.ts";
import type { EncodedMessage } from "../domain/forwarded-call.ts";
import type { Call, CallHeaders, Endpoint } from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { type OverSocket, remoteAddressOf } from "./remote-address.ts";

/** A method that is called in JSON. */
export interface JsonMethod {
  readonly endpoint: Endpoint;
  /** Absent: the strict decoder reads everything. */
  readonly codec?: HotMethod | undefined;
}

/** A method and where it is called. */
export interface RoutedMethod extends JsonMethod {
  readonly verb: Route["verb"];
  readonly path: string;
}

/** The methods of all routes. A method without a codec among `codecs` is read by the strict decoder. */
export function routedMethodsOf(
  routes: readonly Route[],
  endpoints: readonly Endpoint[],
  codecs: readonly HotMethod[],
): RoutedMethod[] {
  return routes.map(({ verb, path, method }) => {
    const endpoint = endpoints.find((candidate) => candidate.method === method);
    if (endpoint === undefined) throw new Error(`nothing answers ${path}`);
    return { verb, path, endpoint, codec: codecs.find((candidate) => candidate.method === method) };
  });
}

/** What a call needs of the request that it came in. */
export interface JsonRequest extends OverSocket {
  readonly headers: CallHeaders;
}

/** The request of a public call on the fast path: its headers and its address are never needed. */
export const noHeaders: JsonRequest = { headers: {}, socket: {} };

/** A call in JSON, on the fast path or through Node. Its fields are public because that is faster: every request creates one. */
export class JsonCall implements Call {
  readonly endpoint: Endpoint;
  readonly protocol = "json";
  readonly requestId: string;
  readonly request: JsonRequest;
  readonly codec: HotMethod | undefined;
  bytes: Buffer;
  readonly start: number;
  readonly end: number;

  /** The body is between `start` and `end`. */
  constructor(method: JsonMethod, requestId: string, request: JsonRequest, bytes: Buffer, start: number, end: number) {
    this.endpoint = method.endpoint;
    this.requestId = requestId;
    this.request = request;
    this.codec = method.codec;
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  get headers(): CallHeaders {
    return this.request.headers;
  }

  remoteAddress(): string | undefined {
    return remoteAddressOf(this.request);
  }

  /** Called once. If the codec does not understand the whole body, the strict decoder reads or refuses it. */
  read(): MessageShape<DescMessage> {
    const { bytes, start, end } = this;
    // A waiting call must not keep the whole chunk in memory that was read from the connection.
    this.bytes = nothing;
    return (
      this.codec?.decodeJson(bytes, start, end) ?? readMessage(this.endpoint.method.input, encodedIn(bytes, start, end))
    );
  }

  encoded(): EncodedMessage {
    const { bytes, start, end } = this;
    this.bytes = nothing;
    return encodedIn(bytes, start, end);
  }
}

const nothing = Buffer.alloc(0);

function encodedIn(bytes: Buffer, start: number, end: number): EncodedMessage {
  return { encoding: "json", bytes: bytes.subarray(start, end) };
}

/** Includes `valid: false` and `remaining: 0`, which protobuf's JSON leaves out by default. */
export function encodeJson({ codec, endpoint }: JsonMethod, response: MessageInitShape<DescMessage>): string {
  if (codec !== undefined) return codec.encodeJson(response);
  const { output } = endpoint.method;
  return toJsonString(output, create(output, response), { alwaysEmitImplicit: true });
}
