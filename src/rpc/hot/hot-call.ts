import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import type { HotMethod } from "../../codec/codec-runtime.ts";
import type { Call, Endpoint, Protocol, RunCall } from "../call.ts";

/** What thin handlers need of the service: the same as the reference path has. */
export interface HotDeps {
  readonly endpoints: readonly Endpoint[];
  readonly runCall: RunCall;
  readonly newRequestId: () => string;
}

/** A hot method and what answers it. */
export interface HotEndpoint {
  readonly codec: HotMethod;
  readonly endpoint: Endpoint;
}

export function hotEndpointsOf(endpoints: readonly Endpoint[]): HotEndpoint[] {
  return hotMethods.map((codec) => {
    const endpoint = endpoints.find(({ method }) => method === codec.method);
    if (endpoint === undefined) throw new Error(`nothing answers ${codec.path}`);
    return { codec, endpoint };
  });
}

/** A call whose message was read, and held to its rules, by a generated codec. */
export class HotCall implements Call {
  readonly endpoint: Endpoint;
  readonly protocol: Protocol;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly message: MessageShape<DescMessage>;

  constructor(
    endpoint: Endpoint,
    protocol: Protocol,
    requestId: string,
    headers: HotCall["headers"],
    message: MessageShape<DescMessage>,
  ) {
    this.endpoint = endpoint;
    this.protocol = protocol;
    this.requestId = requestId;
    this.headers = headers;
    this.message = message;
  }

  header(name: string): string | undefined {
    const value = this.headers[name];
    return typeof value === "string" ? value : undefined;
  }

  read(): MessageShape<DescMessage> {
    return this.message;
  }
}
