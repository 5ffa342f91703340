import * as grpc from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { openRawStream } from "../core/raw-stream.ts";
import { startTestServer } from "../support/in-process-server.ts";

describe("the internal service", () => {
  it("is not served on the public port, with or without the root key", async () => {
    const { port, rootKey } = await startTestServer();
    for (const authorization of [undefined, `Bearer ${rootKey}`]) {
      const stream = openRawStream(`127.0.0.1:${port}`, authorization);
      stream.send({});
      expect((await stream.ended).code).toBe(grpc.status.UNIMPLEMENTED);
    }
  });
});
