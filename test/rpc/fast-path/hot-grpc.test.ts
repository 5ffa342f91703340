import type { ServerHttp2Stream } from "node:http2";
import { PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import { hotMethods } from "../../../gen/latchkey/v1/services.ts";
import type { Endpoint, RunCall } from "../../../src/rpc/call.ts";
import { createHotGrpc } from "../../../src/rpc/fast-path/hot-grpc.ts";

/** A stream on which Node refuses to send anything. */
class FailingStream extends PassThrough {
  aborted = false;
  headersSent = false;
  respond = vi.fn(() => {
    throw new Error("cannot be answered");
  });
}

const headers = {
  ":method": "POST",
  ":path": "/latchkey.v1.KeysService/VerifyKey",
  "content-type": "application/grpc",
};

/** An unhandled rejection ends the process, and fails this test run. */
it("destroys a stream on which neither the late answer nor the error can be sent", async () => {
  const endpoints = hotMethods.map(({ method }) => ({ method }) as unknown as Endpoint);
  const runCall = (async () => ({ valid: false })) as unknown as RunCall;
  const take = createHotGrpc({ endpoints, runCall, newRequestId: () => "req_1" });
  const stream = new FailingStream({ autoDestroy: false });
  const failed = vi.fn();
  stream.on("error", failed);

  expect(take(stream as unknown as ServerHttp2Stream, headers, 0)).toBe(true);
  stream.end(Buffer.from([0, 0, 0, 0, 2, 10, 0]));

  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce());
  expect(stream.respond).toHaveBeenCalledTimes(2);
  expect(stream.destroyed).toBe(true);
});
