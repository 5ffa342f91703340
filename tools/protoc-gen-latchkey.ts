// The buf plugin that derives everything HTTP from the proto files of latchkey.v1: the gateway's route table, the
// codecs of hot methods, the JSON types of the SDK, the table of the command line and the OpenAPI document. It reads descriptors, and of
// `/v1/authz` the table beside its handler; never gen/, which buf has just emptied.
import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
  type CodeGeneratorRequest,
  type CodeGeneratorResponse,
  CodeGeneratorResponse_Feature as Feature,
  FileDescriptorSetSchema,
  CodeGeneratorResponseSchema as ResponseSchema,
} from "@bufbuild/protobuf/wkt";
import { type Plugin, runNodeJs } from "@bufbuild/protoplugin";
import { emitClient } from "./protoc-gen-latchkey/emit-client.ts";
import { emitCommands } from "./protoc-gen-latchkey/emit-commands.ts";
import { emitGateway } from "./protoc-gen-latchkey/emit-gateway.ts";
import { emitHot } from "./protoc-gen-latchkey/emit-hot.ts";
import { emitOpenapi } from "./protoc-gen-latchkey/emit-openapi.ts";
import { emitPage } from "./protoc-gen-latchkey/emit-page.ts";
import { emitServices } from "./protoc-gen-latchkey/emit-services.ts";
import { emitUpdates } from "./protoc-gen-latchkey/emit-updates.ts";
import { readContract, type Service } from "./protoc-gen-latchkey/read-contract.ts";

export const plugin: Plugin = { name: "protoc-gen-latchkey", version: "1", run };

function run(request: CodeGeneratorRequest): CodeGeneratorResponse {
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: request.protoFile }));
  const contract = readContract(registry, request.fileToGenerate.toSorted());
  const { services } = contract;
  const file = services.flatMap((service) => [
    { name: `${service.path}_gateway.ts`, content: emitGateway(service) },
    ...hotFile(service),
  ]);
  // buf runs the plugin once for each of its inputs; only the one that holds our services may write what all share.
  if (services.length > 0) {
    file.push(
      { name: `${FOLDER}/services.ts`, content: emitServices(services) },
      { name: `${FOLDER}/updates.ts`, content: emitUpdates(contract.messages) },
      { name: `${FOLDER}/client.ts`, content: emitClient(contract) },
      { name: `${FOLDER}/commands.ts`, content: emitCommands(contract) },
      { name: "openapi.json", content: emitOpenapi(contract) },
      { name: "docs.html", content: emitPage(contract) },
    );
  }
  return create(ResponseSchema, { supportedFeatures: BigInt(Feature.PROTO3_OPTIONAL), file });
}

/** Where everything of the package latchkey.v1 is written. */
const FOLDER = "latchkey/v1";

function hotFile(service: Service): { name: string; content: string }[] {
  const content = emitHot(service);
  return content === undefined ? [] : [{ name: `${service.path}_hot.ts`, content }];
}

if (import.meta.main) runNodeJs(plugin);
