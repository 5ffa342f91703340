import { join } from "node:path";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";

/** Where a program is that people type in a shell. Debian's packages of these two start nothing. */
export function shellProgram(name: "curl" | "openssl"): string {
  const find = () =>
    pathFolders()
      .map((folder) => join(folder, name))
      .find(isExecutable);
  return findOrInstall({ name, debianPackage: name, find });
}
