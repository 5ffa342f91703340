import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./repository.ts";

const exec = promisify(execFile);

/** The environment of a user who has this Node and nothing of the checkout. */
export const userEnvironment = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };

export interface PackedFile {
  readonly path: string;
  readonly mode: number;
}

/** Packs the package as it would be published, into the folder. */
export async function packPackage(folder: string): Promise<{ tarball: string; files: readonly PackedFile[] }> {
  const { stdout } = await exec("npm", ["pack", "--json", "--pack-destination", folder], { cwd: root });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: PackedFile[] }];
  return { tarball: join(folder, packed.filename), files: packed.files };
}

/** Installs the tarball into a new project in the folder. It depends on nothing, so that nothing need be fetched. */
export async function installPackage(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "project", version: "1.0.0", type: "module" }));
  const args = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball];
  await exec("npm", args, { cwd: folder, env: userEnvironment });
}
