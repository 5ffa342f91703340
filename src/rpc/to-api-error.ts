import { Code } from "@connectrpc/connect";
import { CostTooHigh } from "../domain/costs.ts";
import { IncompleteRule } from "../domain/partial-changes.ts";
import { Forbidden, RootKeyRefused } from "../domain/root-key.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { StateConflict } from "../usecases/conflict.ts";
import { ExpiresInThePast, NoSuchApi } from "../usecases/create-with-secret.ts";
import { IdempotencyConflict } from "../usecases/idempotency.ts";
import { NoSuchOwner } from "../usecases/required-owners.ts";
import { ApiError } from "./api-error.ts";
import { InvalidRequest, invalid } from "./invalid-request.ts";
import { memoized } from "./memoized.ts";

/** The only place that turns an internal error into the caller's error. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InvalidRequest) {
    return new ApiError("BAD_REQUEST", error.message, { violations: error.violations, cause: error });
  }
  if (error instanceof ExpiresInThePast) return toApiError(invalid("expires", error.message));
  if (error instanceof CostTooHigh || error instanceof IncompleteRule)
    return toApiError(invalid(error.path, error.message));
  if (error instanceof IdempotencyConflict) return new ApiError("CONFLICT", error.message, { cause: error });
  if (error instanceof StateConflict) {
    const rpc = conflictCodes[error.reason];
    return new ApiError("CONFLICT", error.message, { cause: error, ...(rpc !== undefined && { rpc }) });
  }
  if (error instanceof NoSuchApi || error instanceof NoSuchOwner)
    return new ApiError("NOT_FOUND", error.message, { cause: error });
  if (error instanceof Forbidden) return new ApiError("FORBIDDEN", error.message, { cause: error });
  if (error instanceof RootKeyRefused) return new ApiError("UNAUTHORIZED", error.message, { cause: error });
  if (error instanceof Unavailable) return unavailable(error);
  return new ApiError("INTERNAL_SERVER_ERROR", "something went wrong inside the service", { cause: error });
}

/** What callers over gRPC can do about a conflict: read again and repeat, or change something else first. */
const conflictCodes: Partial<Record<StateConflict["reason"], Code>> = {
  version: Code.Aborted,
  noCounter: Code.FailedPrecondition,
  belowZero: Code.FailedPrecondition,
  aboveMax: Code.FailedPrecondition,
  ownerHasKeys: Code.FailedPrecondition,
};

/** Errors that are thrown often are converted once: creating a stack trace each time costs more than finding a key. */
const unavailable = memoized((cause: Unavailable): ApiError => {
  const { retryAfterMs, nothingDone: isRepeatable } = cause;
  const message = "the service cannot decide right now; try again";
  return new ApiError("SERVICE_UNAVAILABLE", message, { retryAfterMs, isRepeatable, cause });
});
