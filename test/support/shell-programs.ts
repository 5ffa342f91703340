import { existsSync } from "node:fs";
import { join } from "node:path";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";

/** Debian's packages of these start nothing. */
const packages = {
  curl: "curl",
  fish: "fish",
  git: "git",
  openssl: "openssl",
  zsh: "zsh",
  // The second holds the files of google/protobuf, which other packages of protoc have in themselves.
  protoc: "protobuf-compiler libprotobuf-dev",
};

/** Where a program is that people type in a shell. */
export function shellProgram(name: keyof typeof packages): string {
  const isWhole = (folder: string) =>
    isExecutable(join(folder, name)) &&
    (name !== "protoc" || existsSync(join(folder, "../include/google/protobuf/struct.proto")));
  const find = () => pathFolders().filter(isWhole)[0];
  return join(findOrInstall({ name, debianPackage: packages[name], find }), name);
}
