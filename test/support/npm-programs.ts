import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cached } from "./cached-programs.ts";

/**
 * The folder `node_modules` that holds a package which one test needs and everybody else would have to install. Where it is
 * missing, npm installs it without running its scripts.
 */
export function npmPackage(name: string, exactVersion: string): string {
  const wanted = `${name}@${exactVersion}`;
  const folder = cached(wanted, (fresh) => {
    writeFileSync(join(fresh, "package.json"), '{ "private": true }\n');
    const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact"];
    execFileSync("npm", ["install", "--prefix", fresh, ...options, wanted], { cwd: fresh, stdio: "pipe" });
  });
  return join(folder, "node_modules");
}
