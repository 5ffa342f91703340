import { execFile } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./repository.ts";

const exec = promisify(execFile);

/** The environment of a user who has this Node and nothing of the checkout. */
export const userEnvironment = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };

/** Packages of this checkout, as if the project in the folder had installed them. */
export function linkPackages(project: string, names: readonly string[]): void {
  for (const name of names) {
    const path = join(project, "node_modules", name);
    mkdirSync(dirname(path), { recursive: true });
    rmSync(path, { force: true });
    symlinkSync(join(root, "node_modules", name), path);
  }
}

/** A Node on this machine that is older than what the service needs. */
export async function olderNode(): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const node = join(folder, "node");
    const version = await exec(node, ["-p", "process.versions.node"]).catch(() => undefined);
    if (version !== undefined && Number.parseInt(version.stdout, 10) < 24) return node;
  }
  return undefined;
}

/** Installs the tarball into a new project in the folder. It depends on nothing, so that nothing need be fetched. */
export async function installPackage(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "project", version: "1.0.0", type: "module" }));
  const args = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball];
  await exec("npm", args, { cwd: folder, env: userEnvironment });
}
