import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { ForwardedAnswer, ForwardedCall, ForwardedError } from "../domain/forwarded-call.ts";
import type { Management } from "../usecases/management-within.ts";
import { ApiError, type ErrorCode, errorCodes } from "./api-error.ts";
import {
  type Call,
  type CallHeaders,
  type Endpoint,
  headerOf,
  idempotencyHeader,
  type Protocol,
  type RunCall,
  type RunCallDeps,
} from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { toApiError } from "./to-api-error.ts";

/** Sends a management call to the core. Calls that only read may be sent more than once. Rejects with `Unavailable`. */
export type CarryOut = (call: ForwardedCall, isRead: boolean) => Promise<ForwardedAnswer>;

/** For a front that has its core elsewhere. */
export function createForward(carryOut: CarryOut): NonNullable<RunCallDeps["forward"]> {
  return async function forward(call, rootKey, onAnswered) {
    const { endpoint, protocol, requestId, headers } = call;
    const message = call.encoded?.();
    if (message === undefined) throw new Error(`${endpoint.name} is called by a way that cannot be forwarded`);
    const forwarded: ForwardedCall = {
      method: endpoint.name,
      // A copy: the chunk that it was read with is larger, and may be used for something else.
      message: { ...message, bytes: new Uint8Array(message.bytes) },
      rootKey: rootKey.reveal(),
      idempotencyKey: headerOf(headers, idempotencyHeader),
      requestId,
      protocol,
      address: call.remoteAddress(),
      timeLeftMs: timeLeftMs(headers),
    };
    const answer = await carryOut(forwarded, endpoint.isRead);
    onAnswered();
    if ("error" in answer) throw fromForwardedError(answer.error);
    return fromBinary(endpoint.method.output, answer.response);
  };
}

/** For the core: carries out calls that fronts have forwarded. Never rejects. Resolves to undefined if there is no such method. */
export function createAnswerForwarded(endpoints: readonly Endpoint[], runCall: RunCall) {
  const byName = new Map(endpoints.map((endpoint) => [endpoint.name, endpoint]));

  return async function answerForwarded(
    { method, message, rootKey, idempotencyKey, ...forwarded }: ForwardedCall,
    management: Management,
  ): Promise<ForwardedAnswer | undefined> {
    const endpoint = byName.get(method);
    if (endpoint?.handle === undefined) return undefined;
    try {
      const call: Call = {
        endpoint,
        protocol: forwarded.protocol as Protocol,
        requestId: forwarded.requestId,
        headers: { authorization: `Bearer ${rootKey}`, [idempotencyHeader]: idempotencyKey },
        remoteAddress: () => forwarded.address,
        read: () => readMessage(endpoint.method.input, message),
      };
      const { output } = endpoint.method;
      return { response: toBinary(output, create(output, await runCall(call, management))) };
    } catch (thrown) {
      const { code, message, violations, retryAfterMs, isRepeatable, rpc } = toApiError(thrown);
      return { error: { code, message, violations, retryAfterMs, isRepeatable, rpc } };
    }
  };
}

/** How long the caller still waits, as far as its protocol says. */
function timeLeftMs(headers: CallHeaders): number | undefined {
  const connect = headerOf(headers, "connect-timeout-ms");
  if (connect !== undefined) return Number(connect);
  const [, digits, unit] = headerOf(headers, "grpc-timeout")?.match(/^(\d+)([HMSmun])$/) ?? [];
  return digits === undefined ? undefined : Number(digits) * msOf[unit as keyof typeof msOf];
}

const msOf = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000001 };

function fromForwardedError({ code, message, retryAfterMs, ...options }: ForwardedError): ApiError {
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "INTERNAL_SERVER_ERROR";
  return new ApiError(known, message, { ...options, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}
