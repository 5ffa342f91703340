// Writes the contract as others use it: a folder of proto files with everything that they import, apart from
// google/protobuf, which every compiler brings along. `npm ci` writes it to `.proto`, where buf finds the imports of our own
// files; the package @latchkey/client has it too.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { file_buf_validate_validate as validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { printProto } from "./print-proto.ts";

const root = join(import.meta.dirname, "..");

/** The folder of `google/api`, which a package ships without these options. Google's own files have them. */
const googleFolder = join(root, "node_modules/protobufjs/google");
const languageOptions = `option go_package = "google.golang.org/genproto/googleapis/api/annotations;annotations";
option java_package = "com.google.api";
option java_multiple_files = true;
`;

const validateOrigin = `// Printed from the descriptor in @bufbuild/protovalidate, without comments, and without options of messages and fields.
// Copyright 2024-2026 Buf Technologies, Inc. Licensed under the Apache License, Version 2.0.
`;

/** Writes the folder again. The internal protocol is not in it. */
export function writeProtoFolder(folder = join(root, ".proto")): void {
  rmSync(folder, { recursive: true, force: true });
  for (const part of ["latchkey/v1", "google/api"]) mkdirSync(join(folder, part), { recursive: true });
  const ours = join(root, "proto/latchkey/v1");
  for (const name of readdirSync(ours).filter((each) => each.endsWith(".proto"))) {
    const text = readFileSync(join(ours, name), "utf8");
    writeFileSync(join(folder, "latchkey/v1", name), withoutRedaction(text));
  }
  const validatePath = join(folder, validate.proto.name);
  mkdirSync(dirname(validatePath), { recursive: true });
  // No package ships it.
  writeFileSync(validatePath, `${validateOrigin}${printProto(validate)}`);
  for (const [name, outerClass] of [
    ["annotations.proto", "AnnotationsProto"],
    ["http.proto", "HttpProto"],
  ] as const) {
    const text = readFileSync(join(googleFolder, "api", name), "utf8");
    const options = `${languageOptions}option java_outer_classname = "${outerClass}";\n`;
    writeFileSync(join(folder, "google/api", name), text.replace(/^package google\.api;\n/m, `$&\n${options}`));
  }
  // Ours and those of buf/validate; then those of google/api.
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  copyFileSync(join(googleFolder, "LICENSE"), join(folder, "google/LICENSE"));
}

/**
 * Without the option `debug_redact`. protoc knows it since version 22, and the older ones that Linux distributions carry
 * refuse the whole file for it. Nothing that is sent depends on it.
 */
function withoutRedaction(text: string): string {
  const plain = text.replaceAll(" [debug_redact = true]", "").replace(/^ *debug_redact = true,\n/gm, "");
  if (plain.includes("debug_redact")) throw new Error("debug_redact is written in a form that is not removed");
  return plain;
}

if (import.meta.main) writeProtoFolder();
