import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type DescMessage, type DescService, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { writeValidateProto } from "../../tools/generate.ts";
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
  return {
    files: set.file,
    service: found(registry.getService("latchkey.v1.WidgetsService")),
    messageOf: (name) => found(registry.getMessage(`latchkey.v1.${name}`)),
  };
}
