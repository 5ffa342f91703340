import type { DescMessage, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import type { Route } from "../../gen/latchkey/v1/services.ts";
import { readContract } from "../../tools/protoc-gen-latchkey/read-contract.ts";
import { compileTestProtos } from "./test-protos.ts";

/** A contract of the tests' own, for what the generator and the decoders can do and no method of ours needs yet. */
export interface Widgets {
  /** All files, each after those that it imports. */
  readonly files: readonly FileDescriptorProto[];
  readonly service: DescService;
  /** As the generator reads them. */
  readonly routes: readonly Route[];
  messageOf(name: string): DescMessage;
}

export const widgetsFile = "latchkey/v1/widgets.proto";

export function compileWidgets(): Widgets {
  const { files, registry, found } = compileTestProtos();
  const service = found(registry.getService("latchkey.v1.WidgetsService"));
  const methods = readContract(registry, [widgetsFile]).services.flatMap((each) => each.methods);
  return {
    files,
    service,
    routes: methods.flatMap(({ name, routes }) =>
      routes.map((route) => ({ ...route, method: found(service.method[name]) as DescMethodUnary })),
    ),
    messageOf: (name) => found(registry.getMessage(`latchkey.v1.${name}`)),
  };
}
