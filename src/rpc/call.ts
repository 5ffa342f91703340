import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Clock } from "../ambient/clock.ts";
import type { Log, LogFields } from "../ambient/log.ts";
import type { Metrics } from "../ambient/metrics.ts";
import { Secret } from "../domain/secret.ts";
import type { IsRootKey } from "../usecases/root-keys.ts";
import { ApiError } from "./api-error.ts";
import { toApiError } from "./to-api-error.ts";
import { validate } from "./validate.ts";

/** How a request reached us. */
export type Protocol = "json" | "connect" | "grpc" | "grpc-web";

/** One call of one method, the same whatever protocol it came by. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly protocol: Protocol;
  readonly requestId: string;
  header(name: string): string | undefined;
  /** Reads the message out of the body; throws `InvalidRequest` or `ApiError`. */
  decode(): MessageShape<DescMessage>;
}

/** A method and what answers it. */
export interface Endpoint {
  readonly method: DescMethod;
  readonly access: "public" | "root";
  handle(request: MessageShape<DescMessage>, context: CallContext): Promise<MessageInitShape<DescMessage>>;
}

/** What a method may know of its call beside the message. */
export interface CallContext {
  readonly requestId: string;
  /** The root key the caller showed; only where the method asks for one. */
  readonly rootKey: Secret | undefined;
  header(name: string): string | undefined;
}

/** Throws nothing but `ApiError`. */
export type RunCall = (call: Call) => Promise<MessageInitShape<DescMessage>>;

/** The way of every call: authorise, decode, validate, answer. Nothing is told of a message to a caller without a right. */
export function createRunCall(deps: { isRootKey: IsRootKey; clock: Clock; log: Log; metrics: Metrics }): RunCall {
  const { isRootKey, clock, log, metrics } = deps;

  async function answer({ endpoint, requestId, header, decode }: Call): Promise<MessageInitShape<DescMessage>> {
    const rootKey = endpoint.access === "root" ? authorise(header("authorization")) : undefined;
    const request = decode();
    validate(endpoint.method.input, request);
    return endpoint.handle(request, { requestId, rootKey, header });
  }

  function authorise(authorization: string | undefined): Secret {
    const token = authorization?.match(/^Bearer +([\x21-\x7e]+)$/i)?.[1];
    if (token === undefined) {
      throw new ApiError("UNAUTHORIZED", "this method needs the header Authorization: Bearer <ROOT_KEY>");
    }
    const presented = new Secret(token);
    if (!isRootKey(presented)) throw new ApiError("UNAUTHORIZED", "the root key is not valid");
    return presented;
  }

  /** One line a second at most: an outage makes as many of these as there are calls. */
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  function undecided(fields: LogFields, error: ApiError): void {
    if (clock.monotonicMs() < silentUntilMs) {
      unlogged++;
      return;
    }
    log.warn("a call could not be decided", { ...fields, ...reasonsOf(error), unlogged });
    silentUntilMs = clock.monotonicMs() + 1000;
    unlogged = 0;
  }

  return async function runCall(call) {
    const startedMs = clock.monotonicMs();
    let code = "OK";
    try {
      return await answer(call);
    } catch (thrown) {
      const error = toApiError(thrown);
      code = error.code;
      const fields = { requestId: call.requestId, method: call.endpoint.method.name, code };
      if (code === "INTERNAL_SERVER_ERROR") log.error("a call failed", error.cause, fields);
      else if (code === "SERVICE_UNAVAILABLE") undecided(fields, error);
      throw error;
    } finally {
      const seconds = (clock.monotonicMs() - startedMs) / 1000;
      metrics.called(call.endpoint.method.name, call.protocol, code, seconds);
      if (log.debugEnabled) {
        const { requestId, protocol } = call;
        log.debug("call", { requestId, method: call.endpoint.method.name, protocol, code, seconds });
      }
    }
  };
}

/** What the store said, and the code of what it heard itself; never a message of somebody else's. */
function reasonsOf({ cause }: ApiError): LogFields {
  const origin = cause instanceof Error ? (cause.cause as { code?: unknown } | undefined) : undefined;
  return {
    reason: cause instanceof Error ? cause.message : undefined,
    originCode: typeof origin?.code === "string" ? origin.code : undefined,
  };
}
