import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter } from "node:path";

/** Server programs that the tests need. */
export interface Programs {
  /** For messages. */
  readonly name: string;
  /** One, or several with spaces between them. */
  readonly debianPackage: string;
  /** Answers where they are. */
  find(): string | undefined;
  /** Done before the package is installed, so that it sets up and starts nothing. */
  prepare?(): void;
}

/** Where the programs are. Where they are missing and this user may, Debian's package is installed. */
export function findOrInstall(programs: Programs): string {
  return programs.find() ?? install(programs);
}

/** The folders of the path. */
export function pathFolders(): string[] {
  return (process.env.PATH ?? "").split(delimiter);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function install({ name, debianPackage, find, prepare }: Programs): string {
  const installLine = `apt-get install -y --no-install-recommends ${debianPackage}`;
  const mayInstall = process.getuid?.() === 0 && isExecutable("/usr/bin/apt-get");
  if (!mayInstall) throw new Error(`The tests need ${name}. As root, type: ${installLine}`);
  console.log(`The tests need ${name}, which is missing: installing Debian's package.`);
  prepare?.();
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const aptGet = (...args: string[]) =>
    execFileSync("apt-get", ["-q", ...args], { env, stdio: ["ignore", "ignore", "inherit"] });
  aptGet("update");
  aptGet(
    "install",
    "-y",
    "--no-install-recommends",
    "-o",
    "Dpkg::Options::=--force-confold",
    ...debianPackage.split(" "),
  );
  const found = find();
  if (found === undefined) throw new Error(`${name} is still missing. Type: ${installLine}`);
  return found;
}
