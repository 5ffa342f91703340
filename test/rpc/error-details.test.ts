import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import type { ServiceError } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { BadRequestSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import { failuresMax } from "../../src/domain/failures-by-address.ts";
import { ApiError } from "../../src/rpc/api-error.ts";
import { errorTrailers, toConnectError } from "../../src/rpc/grpc-errors.ts";
import { InvalidRequest } from "../../src/rpc/invalid-request.ts";
import { toApiError } from "../../src/rpc/to-api-error.ts";
import { type ClientKind, clientKinds, clientOf } from "../support/clients.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { testRootKey } from "../support/test-root-key.ts";

const requestId = "req_0123456789abcdefghijkl";

/** The error as a client library decodes it. What grpc-js keeps in its metadata is read as Connect does it. */
async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  const thrown = await call.then(
    () => expect.fail("is served"),
    (error: unknown) => error,
  );
  if (thrown instanceof ConnectError) return thrown;
  const [details] = (thrown as ServiceError).metadata.get("grpc-status-details-bin");
  const headers = new Headers({ "grpc-status-details-bin": Buffer.from(details as Buffer).toString("base64") });
  return findTrailerError(headers) ?? expect.fail("has no status");
}

describe.each(clientKinds.filter((kind): kind is Exclude<ClientKind, "sdk"> => kind !== "sdk"))("over %s", (kind) => {
  it("a bad request names its fields as Google's error model does, and the same as ours", async () => {
    const { baseUrl, rootKey } = await start();
    const { createKey } = clientOf(kind, baseUrl, rootKey);
    const error = await errorOf(createKey({ apiId: "", remaining: -1 }));
    const [ours] = error.findDetails(ErrorDetailSchema);
    const [bad] = error.findDetails(BadRequestSchema);
    expect(ours?.violations.map(({ path }) => path)).toEqual(["apiId", "remaining"]);
    expect(bad?.fieldViolations.map(({ field, description }) => [field, description])).toEqual(
      ours?.violations.map(({ path, message }) => [path, message]),
    );
    expect(error.findDetails(RetryInfoSchema)).toEqual([]);
  });

  it("an error that passes says after which time", async () => {
    const { baseUrl } = await start();
    const { createKey } = clientOf(kind, baseUrl, "another-root-key");
    for (let failed = 0; failed < failuresMax; failed++) await errorOf(createKey({ apiId: "api" }));
    const error = await errorOf(createKey({ apiId: "api" }));
    const [ours] = error.findDetails(ErrorDetailSchema);
    const [{ retryDelay } = expect.fail("no RetryInfo")] = error.findDetails(RetryInfoSchema);
    expect(ours).toMatchObject({ code: "TOO_MANY_REQUESTS", retryDelayMs: expect.any(Number) });
    expect(retryDelay && durationMs(retryDelay)).toBe(ours?.retryDelayMs);
    expect(error.findDetails(BadRequestSchema)).toEqual([]);
  });
});

describe("the details of an error", () => {
  const unavailable = (isRepeatable: boolean) =>
    toConnectError(new ApiError("SERVICE_UNAVAILABLE", "wait", { retryAfterMs: 1500, isRepeatable }), requestId);

  it("invite to a repeat only where it takes nothing twice", () => {
    expect(unavailable(true).findDetails(RetryInfoSchema)).toMatchObject([
      { retryDelay: { seconds: 1n, nanos: 500_000_000 } },
    ]);
    expect(unavailable(false).findDetails(RetryInfoSchema)).toEqual([]);
  });

  it.each([1, 2, 5, 10, 20])("stay within 4 KB with all headers, where %i long violations were found", (count) => {
    const message = "x".repeat(count === 1 ? 500 : 1200 / count);
    const violations = Array.from({ length: count }, (_, i) => ({ path: `defaults.ratelimits[${i}].name`, message }));
    const error = toApiError(new InvalidRequest(violations));
    const overGrpc = Object.entries(errorTrailers(error, requestId)).flat().join("").length;
    const overConnect = errorToJsonBytes(toConnectError(error, requestId), { alwaysEmitImplicit: true }).length;
    // The other headers of an answer take a tenth of that.
    expect(overGrpc).toBeLessThan(3_700);
    expect(overConnect).toBeLessThan(3_700);
    const [bad] = toConnectError(error, requestId).findDetails(BadRequestSchema);
    const [ours] = toConnectError(error, requestId).findDetails(ErrorDetailSchema);
    expect(bad?.fieldViolations.length).toBe(ours?.violations.length);
    expect(ours?.violations.length).toBeGreaterThanOrEqual(Math.min(count, 3) - 1);
  });
});

async function start() {
  const { onePort } = composePublicApi();
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return { baseUrl: `http://127.0.0.1:${port}`, rootKey: testRootKey };
}
