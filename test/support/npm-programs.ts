import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./repository.ts";

/** Beside what is installed, so that later runs find it, and a clean installation removes it. */
const cache = join(root, "node_modules/.cache/latchkey-tests");

/**
 * The folder `node_modules` that holds a package which one test needs and everybody else would have to install. Where it is
 * missing, npm installs it without running its scripts.
 */
export function npmPackage(name: string, exactVersion: string): string {
  const folder = join(cache, `${name.replace("/", "+")}@${exactVersion}`);
  if (!existsSync(folder)) install(folder, `${name}@${exactVersion}`);
  return join(folder, "node_modules");
}

/** In a folder of its own first: another test may do the same, and must not find half of it. */
function install(folder: string, wanted: string): void {
  console.log(`The tests need ${wanted}, which is missing: installing it with npm.`);
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "new-"));
  try {
    writeFileSync(join(fresh, "package.json"), '{ "private": true }\n');
    const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"];
    execFileSync("npm", ["install", "--prefix", fresh, ...options, wanted], { cwd: fresh, stdio: "pipe" });
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
