import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { root } from "./repository.ts";

const modules = [
  { path: "proto" },
  { path: "test/support/proto" },
  { path: ".proto", includes: [".proto/buf", ".proto/google"] },
];

export interface TestProtos {
  /** All files, each after those that it imports. */
  readonly files: readonly FileDescriptorProto[];
  readonly registry: FileRegistry;
  /** The value, if there is one. */
  found<T>(value: T | undefined): T;
}

/** Compiles the proto files of test/support/proto. */
export function compileTestProtos(): TestProtos {
  return compileProtos("test/support/proto", "--config", JSON.stringify({ version: "v2", modules }));
}

/** Compiles the proto files of a folder with buf. */
export function compileProtos(folder: string, ...options: string[]): TestProtos {
  const args = ["build", folder, ...options, "-o", "-"];
  const image = execFileSync(join(root, "node_modules/.bin/buf"), args, { cwd: root });
  const set = fromBinary(FileDescriptorSetSchema, image);
  return { files: set.file, registry: createFileRegistry(set), found };
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the proto files of the tests do not hold what this test looks for");
  return value;
}
