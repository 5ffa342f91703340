import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  createFileRegistry,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  fromBinary,
} from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Route } from "../../gen/latchkey/v1/services.ts";
import { writeValidateProto } from "../../tools/generate.ts";
import { readContract } from "../../tools/protoc-gen-latchkey/read-contract.ts";
import { root } from "./repository.ts";

const modules = [
  { path: "proto" },
  { path: "test/support/proto" },
  { path: "node_modules/protobufjs", includes: ["node_modules/protobufjs/google/api"] },
  { path: ".proto" },
];

/** A contract of the tests' own, for what the generator and the decoders can do and no method of ours needs yet. */
export interface Widgets {
  /** widgets.proto, after all files that it imports. */
  readonly files: readonly FileDescriptorProto[];
  readonly service: DescService;
  /** As the generator reads them. */
  readonly routes: readonly Route[];
  messageOf(name: string): DescMessage;
}

export const widgetsFile = "latchkey/v1/widgets.proto";

/** Compiles widgets.proto with buf. */
export function compileWidgets(): Widgets {
  writeValidateProto();
  const args = ["build", "test/support/proto", "--config", JSON.stringify({ version: "v2", modules }), "-o", "-"];
  const image = execFileSync(join(root, "node_modules/.bin/buf"), args, { cwd: root });
  const set = fromBinary(FileDescriptorSetSchema, image);
  const registry = createFileRegistry(set);
  const found = <T>(value: T | undefined) => {
    if (value === undefined) throw new Error("widgets.proto does not hold what this test looks for");
    return value;
  };
  const service = found(registry.getService("latchkey.v1.WidgetsService"));
  const methods = readContract(registry, [widgetsFile]).services.flatMap((each) => each.methods);
  return {
    files: set.file,
    service,
    routes: methods.flatMap(({ name, routes }) =>
      routes.map((route) => ({ ...route, method: found(service.method[name]) as DescMethodUnary })),
    ),
    messageOf: (name) => found(registry.getMessage(`latchkey.v1.${name}`)),
  };
}
