import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findOrInstall, isExecutable, pathFolders } from "./debian-programs.ts";

const needed = ["initdb", "postgres", "pg_basebackup"];
const debianFolder = "/usr/lib/postgresql";

/** The folder of Postgres' server programs: from the path, or where Debian puts them. */
export function postgresBinaries(): string {
  return findOrInstall({ name: "Postgres' server", debianPackage: "postgresql", find, prepare });
}

function find(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...pathFolders(), ...versions.map((version) => join(debianFolder, version, "bin"))];
  return folders.find((folder) => needed.every((program) => isExecutable(join(folder, program))));
}

/** Read by the package's own set-up: makes no database cluster, so there is nothing to start. */
function prepare(): void {
  mkdirSync("/etc/postgresql-common", { recursive: true });
  const config = "/etc/postgresql-common/createcluster.conf";
  if (!existsSync(config)) writeFileSync(config, "create_main_cluster = false\n");
}
