import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const needed = ["initdb", "postgres", "pg_basebackup"];
const debianFolder = "/usr/lib/postgresql";
const installLine = "apt-get install -y --no-install-recommends postgresql";

/**
 * The folder of Postgres' server programs: from the path, or where Debian puts them. Where they are missing and this
 * user may, Debian's package is installed, without the server that it would otherwise set up and start.
 */
export function postgresBinaries(): string {
  return find() ?? install();
}

function find(): string | undefined {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? "").split(delimiter),
    ...versions.map((version) => join(debianFolder, version, "bin")),
  ];
  return folders.find((folder) => needed.every((program) => isExecutable(join(folder, program))));
}

function install(): string {
  const mayInstall = process.getuid?.() === 0 && isExecutable("/usr/bin/apt-get");
  if (!mayInstall) throw new Error(`The tests need Postgres' server programs. As root, type: ${installLine}`);
  console.log("The tests need Postgres' server programs, which are missing: installing Debian's package.");
  // Read by the package's own set-up: makes no database cluster, so there is nothing to start.
  mkdirSync("/etc/postgresql-common", { recursive: true });
  const config = "/etc/postgresql-common/createcluster.conf";
  if (!existsSync(config)) writeFileSync(config, "create_main_cluster = false\n");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const aptGet = (...args: string[]) =>
    execFileSync("apt-get", ["-q", ...args], { env, stdio: ["ignore", "ignore", "inherit"] });
  aptGet("update");
  aptGet("install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "postgresql");
  const found = find();
  if (found === undefined) throw new Error(`Postgres' server programs are still missing. Type: ${installLine}`);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
