import { hotMethods } from "../../../gen/latchkey/v1/services.ts";
import type { HotMethod } from "../../codec/codec-runtime.ts";
import type { Endpoint, RunCall } from "../call.ts";

/** What the fast path needs of the service: the same as the reference path has. */
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
