import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findOrInstall, isExecutable, maskService, pathFolders } from "./debian-programs.ts";

/** PgBouncer's one program. */
export function pgbouncerBinary(): string {
  return findOrInstall({ name: "PgBouncer", debianPackage: "pgbouncer", find, prepare });
}

function find(): string | undefined {
  return [...pathFolders(), "/usr/sbin"].map((folder) => join(folder, "pgbouncer")).find(isExecutable);
}

/** Read by the package's own set-up: its service is started neither by the init script nor by systemd. */
function prepare(): void {
  const defaults = "/etc/default/pgbouncer";
  if (!existsSync(defaults)) writeFileSync(defaults, "START=0\n");
  maskService("pgbouncer");
}
