import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { loadFileDescriptorSetFromBuffer, loadSync } from "@grpc/proto-loader";
import { expect, it } from "vitest";
import { services } from "../../gen/latchkey/v1/services.ts";
import { dynamicClient, liveOnce, loaderOptions } from "../support/dynamic-client.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { root } from "../support/repository.ts";

interface Answer {
  readonly list_services_response?: { readonly service: readonly { readonly name: string }[] };
  readonly file_descriptor_response?: { readonly file_descriptor_proto: readonly Buffer[] };
}

/** Asks as a client does that was written before there was v1. */
function openReflection(port: number) {
  const includeDirs = [join(root, "node_modules/@grpc/reflection/build/proto")];
  const loaded = loadSync("grpc/reflection/v1alpha/reflection.proto", { ...loaderOptions, includeDirs });
  const client = dynamicClient(loaded, "grpc.reflection.v1alpha.ServerReflection", port);
  const { ServerReflectionInfo } = client as unknown as Record<string, () => ClientDuplexStream<object, Answer>>;
  const stream = ServerReflectionInfo?.call(client) ?? expect.fail("no stream");
  const answers: AsyncIterator<Answer> = stream[Symbol.asyncIterator]();
  return {
    async ask(question: object): Promise<Answer> {
      stream.write(question);
      return (await answers.next()).value;
    },
    close: () => stream.end(),
  };
}

it("a client that knows v1alpha only creates, verifies and deletes a key", async () => {
  const server = await startTestServer();
  const reflection = openReflection(server.port);
  const { list_services_response: list } = await reflection.ask({ list_services: "" });
  const names = list?.service.map(({ name }) => name) ?? [];
  for (const { typeName } of services) expect(names).toContain(typeName);

  const { file_descriptor_response: found } = await reflection.ask({
    file_containing_symbol: "latchkey.v1.KeysService",
  });
  reflection.close();
  const file = (found?.file_descriptor_proto ?? []).map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  const set = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
  const life = await liveOnce(loadFileDescriptorSetFromBuffer(Buffer.from(set), loaderOptions), server);
  expect(life.verified).toMatchObject({ valid: true, code: "VALID", key_id: life.keyId, remaining: 1 });
  expect(life.deleted).toEqual({});
  expect(life.afterwards).toMatchObject({ code: "NOT_FOUND" });
});
