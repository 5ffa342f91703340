import {
  type ManagementAnswer as WireAnswer,
  type ManagementCall as WireCall,
  ManagementCall_Encoding as WireEncoding,
} from "../../gen/latchkey/core/v2/core_pb.js";
import type { Encoding, ForwardedAnswer, ForwardedCall } from "../domain/forwarded-call.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { Change } from "../store/changes.ts";
import { impossible, optional, text } from "./checks.ts";
import { type Answered, InvalidMessage, type Question, rootKeyMax } from "./wire.ts";
import { fromWireChange, toWireChange } from "./wire-feed.ts";

/* Management calls as they go over the internal streams. */

/** A management call that was carried out, or has failed. */
export interface CarriedOut {
  readonly answer: ForwardedAnswer;
  /** What was changed, as far as it is known; also by a call that has failed. */
  readonly changed: readonly Change[] | "everything";
}

/** More changes than this are not named: the edge forgets everything. */
export const changesMax = 1000;
/** As much as the public port takes. */
const bodyBytesMax = 65_536;

const wireEncodings: Readonly<Record<Encoding, WireEncoding>> = {
  json: WireEncoding.JSON,
  query: WireEncoding.QUERY,
  rpcJson: WireEncoding.RPC_JSON,
  proto: WireEncoding.PROTO,
};
const encodings = new Map(Object.entries(wireEncodings).map(([ours, wire]) => [wire, ours as Encoding]));

export function toWireManagement({ message, ...call }: ForwardedCall): Question {
  return { case: "management", value: { ...call, encoding: wireEncodings[message.encoding], body: message.bytes } };
}

/** Throws on what no edge of ours sends. */
export function fromWireManagement(call: WireCall): ForwardedCall {
  const { body, rootKey, idempotencyKey, timeLeftMs } = call;
  const encoding = encodings.get(call.encoding);
  if (encoding === undefined) throw new InvalidMessage("an encoding that is not known");
  if (body.length > bodyBytesMax || rootKey.length > rootKeyMax) throw impossible("management call");
  if (timeLeftMs !== undefined && !(timeLeftMs >= 0)) throw impossible("time");
  return {
    method: text(call.method, "method"),
    message: { encoding, bytes: body },
    rootKey,
    idempotencyKey,
    requestId: text(call.requestId, "request id"),
    protocol: text(call.protocol, "protocol"),
    address: optional(text)(call.address, "address"),
    timeLeftMs,
  };
}

export function toWireCarriedOut({ answer, changed }: CarriedOut): Answered {
  const everything = changed === "everything" || changed.length > changesMax;
  const changes = everything ? [] : changed.map(toWireChange);
  return { case: "management", value: { result: toWireResult(answer), changes, everything } };
}

function toWireResult(answer: ForwardedAnswer) {
  if ("response" in answer) return { case: "message" as const, value: answer.response };
  const { rpc: rpcCode, violations, ...error } = answer.error;
  return { case: "error" as const, value: { ...error, rpcCode, violations: violations.map((each) => ({ ...each })) } };
}

/** As a coordinator has sent it: it is believed. */
export function fromWireCarriedOut({ result, changes, everything }: WireAnswer): CarriedOut {
  return { answer: fromWireResult(result), changed: everything ? "everything" : changes.flatMap(fromWireChange) };
}

function fromWireResult(result: WireAnswer["result"]): ForwardedAnswer {
  switch (result.case) {
    case "message":
      // A copy: the message that it came in is larger.
      return { response: new Uint8Array(result.value) };
    case "error": {
      const { rpcCode: rpc, code, message, retryAfterMs, isRepeatable } = result.value;
      // Without what only messages have.
      const violations = result.value.violations.map(({ path, message }) => ({ path, message }));
      return { error: { code, message, violations, retryAfterMs, isRepeatable, rpc } };
    }
    default:
      throw new Unavailable("the coordinator has given an answer of another kind");
  }
}
