import { Unavailable } from "../domain/unavailable.ts";
import { IdempotencyConflict } from "../usecases/create-key.ts";
import { ApiError } from "./api-error.ts";
import { InvalidRequest } from "./invalid-request.ts";

/** The one place where what went wrong inside becomes what a caller is told. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InvalidRequest) {
    return new ApiError("BAD_REQUEST", error.message, { violations: error.violations, cause: error });
  }
  if (error instanceof IdempotencyConflict) return new ApiError("CONFLICT", error.message, { cause: error });
  if (error instanceof Unavailable) {
    return new ApiError("SERVICE_UNAVAILABLE", "the service cannot decide right now; try again", {
      retryAfterMs: error.retryAfterMs,
      cause: error,
    });
  }
  return new ApiError("INTERNAL_SERVER_ERROR", "something went wrong inside the service", { cause: error });
}
