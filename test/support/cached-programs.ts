import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "./repository.ts";

/** Beside what is installed, so that later runs find it, and a clean installation removes it. */
const cache = join(root, "node_modules/.cache/latchkey-tests");

/**
 * The folder that holds something of this name and version, installed where it is missing. In a folder of its own first: another
 * test may do the same, and must not find half of it.
 */
export function cached(wanted: string, install: (fresh: string) => void): string {
  const folder = join(cache, wanted.replaceAll("/", "+"));
  if (existsSync(folder)) return folder;
  console.log(`The tests need ${wanted}, which is missing: installing it.`);
  mkdirSync(cache, { recursive: true });
  const fresh = mkdtempSync(join(cache, "new-"));
  try {
    install(fresh);
    renameSync(fresh, folder);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** A jar with everything that it needs, by its coordinates `group:artifact:version`. Maven fetches it. */
export function mavenJar(coordinates: string): string {
  const [, artifact, version] = coordinates.split(":");
  const folder = cached(coordinates.replaceAll(":", "+"), (fresh) => {
    const options = [`-Dartifact=${coordinates}`, `-DoutputDirectory=${fresh}`];
    execFileSync("mvn", ["-q", "-B", "dependency:copy", ...options], { cwd: fresh, stdio: "pipe" });
  });
  return join(folder, `${artifact}-${version}.jar`);
}

/** A folder of Python packages, for PYTHONPATH. */
export function pythonPackages(...wanted: readonly string[]): string {
  return cached(`python+${wanted.join("+")}`, (fresh) => {
    execFileSync("python3", ["-m", "pip", "install", "-q", "--target", fresh, ...wanted], { stdio: "pipe" });
  });
}

/** The program of a Go module, such as `example.com/cmd/tool@v1.2.3`. */
export function goProgram(module: string, name: string): string {
  const folder = cached(module, (fresh) => {
    const env = { ...process.env, GOBIN: fresh, GOFLAGS: "" };
    execFileSync("go", ["install", module], { cwd: fresh, env, stdio: "pipe" });
  });
  return join(folder, name);
}
