import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import * as alpha from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { file_latchkey_v1_errors } from "../../gen/latchkey/v1/errors_pb.js";
import { memoized } from "./memoized.ts";

type Request = ServerReflectionRequest | alpha.ServerReflectionRequest;

/** No method names these messages: clients find their names in errors. */
const errorDetails = [file_latchkey_v1_errors, file_google_rpc_error_details];

const notFound = 5;
const unimplemented = 12;

/**
 * `grpc.reflection.v1.ServerReflection` lets clients such as `buf curl` learn the schema from the server itself. Older
 * clients know only `v1alpha`, whose messages are the same under another name.
 */
export function addReflection(router: ConnectRouter, services: readonly DescService[]): void {
  const served = [...services, ServerReflection, alpha.ServerReflection];
  const files = new Map<string, DescFile>();
  for (const file of [...served.map((service) => service.file), ...errorDetails]) addWithDependencies(files, file);
  const fileOfSymbol = new Map([...files.values()].flatMap((file) => symbolsOf(file).map((name) => [name, file])));

  router.rpc(ServerReflection.method.serverReflectionInfo, reflect);
  router.rpc(alpha.ServerReflection.method.serverReflectionInfo, reflect);

  async function* reflect<R extends Request>(requests: AsyncIterable<R>) {
    for await (const request of requests) {
      yield { validHost: request.host, originalRequest: request, messageResponse: respond(request) };
    }
  }

  function respond({ messageRequest: { case: kind, value } }: Request) {
    if (kind === "fileByFilename") return fileAnswer(files.get(value));
    if (kind === "fileContainingSymbol") return fileAnswer(fileOfSymbol.get(value));
    if (kind !== "listServices") return errorAnswer(unimplemented, "only services, files and symbols can be asked for");
    return {
      case: "listServicesResponse" as const,
      value: { service: served.map(({ typeName: name }) => ({ name })) },
    };
  }
}

/** With all files that it needs. Encoded once: that takes a millisecond, and any client may ask as often as it likes. */
const encodedFilesOf = memoized((file: DescFile): Uint8Array[] => {
  const closure = new Map<string, DescFile>();
  addWithDependencies(closure, file);
  return [...closure.values()].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
});

function fileAnswer(file: DescFile | undefined) {
  if (file === undefined) return errorAnswer(notFound, "there is no such file or symbol");
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto: encodedFilesOf(file) } };
}

function errorAnswer(errorCode: number, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}

function addWithDependencies(files: Map<string, DescFile>, file: DescFile): void {
  if (files.has(file.proto.name)) return;
  files.set(file.proto.name, file);
  for (const dependency of file.dependencies) addWithDependencies(files, dependency);
}

function symbolsOf(file: DescFile): string[] {
  const types = [...nestedTypes(file)].map(({ typeName }) => typeName);
  const methods = file.services.flatMap((service) => service.methods.map(({ name }) => `${service.typeName}.${name}`));
  return [...types, ...methods];
}
