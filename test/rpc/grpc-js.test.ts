import * as grpc from "@grpc/grpc-js";
import { expect, it, onTestFinished } from "vitest";
import { clientOf } from "../support/clients.ts";
import { startTestServer } from "../support/in-process-server.ts";

it("a method that does not exist is unimplemented to a gRPC client that is not ours", async () => {
  const { port } = await startTestServer();
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const bytes = (buffer: Buffer) => buffer;
  const failure = await new Promise<grpc.ServiceError | null>((resolve) => {
    client.makeUnaryRequest("/latchkey.v1.KeysService/Nothing", bytes, bytes, Buffer.alloc(0), resolve);
  });
  expect(failure).toMatchObject({ code: grpc.status.UNIMPLEMENTED, details: "no such method" });
});

it("a message reaches a gRPC client that is not ours as it was written", async () => {
  const { baseUrl, rootKey } = await startTestServer();
  const refused = clientOf("grpc-js", baseUrl, rootKey).createKey({ apiId: "" });
  await expect(refused).rejects.toMatchObject({
    code: grpc.status.INVALID_ARGUMENT,
    details: expect.stringMatching(/^apiId: /),
  });
});
