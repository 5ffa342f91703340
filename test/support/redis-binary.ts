import { join } from "node:path";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";

/**
 * Redis' server and its checker are one program, which goes by the name that it is called by. Debian's `redis-server`
 * starts a service, now and with the machine; `redis-tools` has the same program and starts nothing.
 */
const names = ["redis-server", "redis-check-rdb"];

/** Redis' one program. Only under the name of `redis-server` is it a server. */
export function redisBinary(): string {
  return findOrInstall({ name: "Redis' server", debianPackage: "redis-tools", find });
}

function find(): string | undefined {
  return names.flatMap((name) => pathFolders().map((folder) => join(folder, name))).find(isExecutable);
}
