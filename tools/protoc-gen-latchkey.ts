// The buf plugin that derives everything HTTP from the proto files of latchkey.v1: the gateway's route table, the
// codecs of hot methods, the JSON types of the SDK and the OpenAPI document. It reads descriptors only, never gen/, which buf has just emptied.
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
import { emitGateway } from "./protoc-gen-latchkey/emit-gateway.ts";
import { emitHot } from "./protoc-gen-latchkey/emit-hot.ts";
import { emitOpenapi } from "./protoc-gen-latchkey/emit-openapi.ts";
import { type Contract, readContract } from "./protoc-gen-latchkey/read-contract.ts";

export const plugin: Plugin = { name: "protoc-gen-latchkey", version: "1", run };

function run(request: CodeGeneratorRequest): CodeGeneratorResponse {
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: request.protoFile }));
  const contracts = request.fileToGenerate.toSorted().flatMap((name) => readContract(registry, name) ?? []);
  const file = contracts.flatMap((contract) => [
    { name: `${contract.path}_gateway.ts`, content: emitGateway(contract) },
    { name: `${contract.path}_client.ts`, content: emitClient(contract) },
    ...hotFile(contract),
  ]);
  // buf runs the plugin once for each of its inputs; only the one that holds our services may write the document.
  if (contracts.length > 0) file.push({ name: "openapi.json", content: emitOpenapi(contracts) });
  return create(ResponseSchema, { supportedFeatures: BigInt(Feature.PROTO3_OPTIONAL), file });
}

function hotFile(contract: Contract): { name: string; content: string }[] {
  const content = emitHot(contract);
  return content === undefined ? [] : [{ name: `${contract.path}_hot.ts`, content }];
}

if (import.meta.main) runNodeJs(plugin);
