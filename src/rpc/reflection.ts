import { type DescEnum, type DescFile, type DescMessage, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../gen/google/rpc/error_details_pb.js";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import * as alpha from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { file_latchkey_v1_errors } from "../../gen/latchkey/v1/errors_pb.js";

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
  const fileAnswer = createFileAnswers();
  const fileOfSymbol = new Map([...files.values()].flatMap((file) => symbolsOf(file).map((name) => [name, file])));

  router.rpc(ServerReflection.method.serverReflectionInfo, reflect);
  router.rpc(alpha.ServerReflection.method.serverReflectionInfo, reflect);

  async function* reflect<R extends Request>(requests: AsyncIterable<R>) {
    for await (const request of requests) {
      yield { validHost: request.host, originalRequest: request, messageResponse: respond(request) };
    }
  }

  function respond({ messageRequest: { case: kind, value } }: Request) {
    switch (kind) {
      case "listServices":
        return {
          case: "listServicesResponse" as const,
          value: { service: served.map((service) => ({ name: service.typeName })) },
        };
      case "fileByFilename":
        return fileAnswer(files.get(value));
      case "fileContainingSymbol":
        return fileAnswer(fileOfSymbol.get(value));
      default:
        return errorAnswer(unimplemented, "only services, files and symbols can be asked for");
    }
  }
}

/** Each file is encoded once: that takes a millisecond, and any client may ask for it as often as it likes. */
function createFileAnswers() {
  const encoded = new Map<DescFile, Uint8Array[]>();
  const encode = (file: DescFile) => {
    const closure = new Map<string, DescFile>();
    addWithDependencies(closure, file);
    return [...closure.values()].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  };
  return (file: DescFile | undefined) => {
    if (file === undefined) return errorAnswer(notFound, "there is no such file or symbol");
    const fileDescriptorProto = encoded.get(file) ?? encode(file);
    encoded.set(file, fileDescriptorProto);
    return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
  };
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
  const ofMessage = (message: DescMessage): string[] => [
    message.typeName,
    ...message.nestedMessages.flatMap(ofMessage),
    ...message.nestedEnums.map((nested: DescEnum) => nested.typeName),
  ];
  return [
    ...file.services.flatMap((service) => [
      service.typeName,
      ...service.methods.map((method) => `${service.typeName}.${method.name}`),
    ]),
    ...file.messages.flatMap(ofMessage),
    ...file.enums.map((type) => type.typeName),
    ...file.extensions.map((extension) => extension.typeName),
  ];
}
