import { describe, expect, it } from "vitest";
import { ChargeUnknown, toChargeError, Unavailable } from "../../src/domain/unavailable.ts";
import { ApiError } from "../../src/rpc/api-error.ts";
import { errorTrailers } from "../../src/rpc/grpc-errors.ts";
import { toApiError } from "../../src/rpc/to-api-error.ts";

const requestId = "req_000000000000000000000";
const pushbackOf = (error: ApiError) => errorTrailers(error, requestId)["grpc-retry-pushback-ms"];

describe("what a client of gRPC is told about repeating a call", () => {
  it("is how long to wait if nothing was done, and not to if that is unknown", () => {
    expect(pushbackOf(toApiError(new Unavailable("full", { nothingDone: true, retryAfterMs: 250 })))).toBe("250");
    expect(pushbackOf(toApiError(new Unavailable("lost")))).toBe("-1");
  });

  it("is nothing for other errors", () => {
    expect(pushbackOf(new ApiError("NOT_FOUND", "there is no such key"))).toBeUndefined();
    expect(pushbackOf(new ApiError("TOO_MANY_REQUESTS", "wait", { retryAfterMs: 10 }))).toBeUndefined();
  });
});

describe("the reason why a charge failed", () => {
  it("says that it may have been charged, unless it never was, and is made once for a batch", () => {
    const lost = new Unavailable("lost", { retryAfterMs: 5, affectsOneKeyOnly: true });
    const told = toChargeError(lost);
    expect(told).toBeInstanceOf(ChargeUnknown);
    expect(told).toMatchObject({ message: "lost", retryAfterMs: 5, affectsOneKeyOnly: true, nothingDone: false });
    expect(toChargeError(lost)).toBe(told);
    const full = new Unavailable("full", { nothingDone: true });
    expect(toChargeError(full)).toBe(full);
    const other = new Error("other");
    expect(toChargeError(other)).toBe(other);
  });
});
