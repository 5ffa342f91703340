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

describe("a path that is not there", () => {
  it("is answered with what there is on that port", async () => {
    const { port, internalPort } = await startTestServer();
    const messageOf = async (of: number) => {
      const answer = await fetch(`http://127.0.0.1:${of}/v1/keys.nothing`);
      expect(answer.status).toBe(404);
      return ((await answer.json()) as { error: { message: string } }).error.message;
    };
    expect(await messageOf(port)).toContain("GET /docs shows all methods");
    const internal = await messageOf(internalPort);
    expect(internal).toContain(
      "this is the internal port, with GET /metrics; keys and probes are served on the public",
    );
    expect(internal).not.toContain("/docs");
  });
});
