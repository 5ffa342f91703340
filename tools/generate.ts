// Generates everything under gen/ again from proto/. `npm test` runs it into the working tree and fails on a difference.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { file_buf_validate_validate as validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printProto } from "./print-proto.ts";

const root = join(import.meta.dirname, "..");

const validateOrigin = `// Printed from the descriptor in @bufbuild/protovalidate, without comments, and without options of messages and fields.
// Copyright 2024-2026 Buf Technologies, Inc. Licensed under the Apache License, Version 2.0.
`;

export function generate(outDir: string): void {
  writeValidateProto();
  execFileSync("buf", ["generate", "--output", outDir], { cwd: root, stdio: "inherit" });
}

/** Writes buf/validate/validate.proto, which our proto files import and no package ships. */
export function writeValidateProto(folder = join(root, ".proto")): void {
  const path = join(folder, validate.proto.name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${validateOrigin}${printProto(validate)}`);
}

if (import.meta.main) generate(root);
