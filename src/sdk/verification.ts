import type { VerifyKeyRequest, VerifyKeyResponse } from "../../gen/latchkey/v1/client.ts";
import { LatchkeyError } from "./errors.ts";

/** What `verifyKey` answers: the service's decision, or what `onUnavailable` made of an outage. */
export type Verification = Decided | Undecided;

/** A decision of the service. */
export interface Decided extends VerifyKeyResponse {
  readonly degraded?: undefined;
  readonly cause?: undefined;
}

/** No decision: the service was not reached, or could not decide. Nothing is known of the key. */
export type Undecided = {
  readonly [Field in Exclude<keyof VerifyKeyResponse, "valid" | "code" | "meta" | "ratelimits">]?: undefined;
} & {
  /** What `onUnavailable` said. */
  readonly valid: boolean;
  readonly code: "UNAVAILABLE";
  readonly degraded: true;
  readonly meta: Record<string, unknown>;
  readonly ratelimits: [];
  /** Why there is no decision. */
  readonly cause: LatchkeyError;
};

/** Decides a verification without the service. The request holds the key: do not log it. */
export type DecideAlone = (cause: LatchkeyError, request: VerifyKeyRequest) => boolean | Promise<boolean>;

export type OnUnavailable = "deny" | "allow" | DecideAlone;

/** An answer of the service that says whether the key is valid. A proxy can answer 200 with any JSON. */
export function asDecided(answer: object): Decided {
  if (typeof (answer as Partial<Decided>).valid === "boolean") return answer as Decided;
  throw new LatchkeyError("BAD_RESPONSE", "answer with status 200 is not one of Latchkey", { status: 200 });
}

/**
 * Whether the failure leaves open if the key is valid: a time-out, a broken connection, a 5xx, a proxy's 429, or a success
 * that did not come from the service. All else is wrong use. The service's own 429 is for wrong root keys.
 */
export function isOutage({ code, status = 0 }: LatchkeyError): boolean {
  if (status === 0) return code === "TIMEOUT" || code === "NETWORK_ERROR";
  return status >= 500 || (status === 429 && code !== "TOO_MANY_REQUESTS") || status < 300;
}

export async function decideAlone(
  cause: LatchkeyError,
  request: VerifyKeyRequest,
  onUnavailable: OnUnavailable,
): Promise<Undecided> {
  const isAllowed =
    typeof onUnavailable === "function" ? await onUnavailable(cause, request) : onUnavailable === "allow";
  // Only the service knows what a key may do and from where.
  const asksMore = request.permissions !== undefined || request.ip !== undefined;
  const valid = isAllowed === true && !asksMore;
  return { valid, code: "UNAVAILABLE", degraded: true, meta: {}, ratelimits: [], cause };
}
