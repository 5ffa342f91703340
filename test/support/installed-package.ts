import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { root } from "./repository.ts";

const exec = promisify(execFile);

/** The environment of somebody who has this Node and nothing of the checkout. */
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

/**
 * Installs the tarball into a new project in the folder. The versions of what it depends on are those of our own lock
 * file: installing those here has put them into npm's cache, so that nothing need be fetched.
 */
export async function installPackage(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder);
  const { name, version, dependencies, bin, engines } = readJson(join(root, "package.json"));
  const { packages, ...lock } = readJson(join(root, "package-lock.json"));
  const runtime = Object.entries(packages as Record<string, { dev?: true }>).filter(([path, { dev }]) => path && !dev);
  const project = { name: "project", version: "1.0.0", type: "module", dependencies: { [name]: `file:${tarball}` } };
  const installed = { version, resolved: `file:${tarball}`, dependencies, bin, engines };
  writeJson(join(folder, "package.json"), project);
  writeJson(join(folder, "package-lock.json"), {
    ...lock,
    name: project.name,
    packages: { "": project, [`node_modules/${name}`]: installed, ...Object.fromEntries(runtime) },
  });
  const args = ["ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  await exec("npm", args, { cwd: folder, env: userEnvironment });
}

// biome-ignore lint/suspicious/noExplicitAny: these are npm's files, whose form npm knows.
function readJson(path: string): any {
  return JSON.parse(readFileSync(path, "utf8"));
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, JSON.stringify(value, undefined, 2));
}
