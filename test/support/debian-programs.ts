import { execFileSync } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";

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

/** A service of systemd that a package brings is started neither now nor with the machine. */
export function maskService(name: string): void {
  const units = "/etc/systemd/system";
  mkdirSync(units, { recursive: true });
  const unit = join(units, `${name}.service`);
  if (!existsSync(unit)) symlinkSync("/dev/null", unit);
}

/** Without systemd, Debian's packages ask this program whether they may start what they bring. */
function withoutStarting(install: () => void): void {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  if (isOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    install();
  } finally {
    if (isOurs) rmSync(policy);
  }
}

/**
 * Copies one program out of Debian's package to `target`, where installing it would bring far more than is needed. Nothing of
 * it is set up.
 */
export function unpackProgram({ name, debianPackage }: Programs, pathInPackage: string, target: string): void {
  console.log(`The tests need ${name}, which is missing: taking it out of Debian's package ${debianPackage}.`);
  const folder = mkdtempSync(`${target}-`);
  try {
    if (process.getuid?.() === 0) execFileSync("apt-get", ["-q", "update"], { stdio: ["ignore", "ignore", "inherit"] });
    execFileSync("apt-get", ["-q", "download", debianPackage], { cwd: folder, stdio: "pipe" });
    execFileSync("sh", ["-c", `dpkg-deb --fsys-tarfile *.deb | tar -x ./${pathInPackage}`], { cwd: folder });
    renameSync(join(folder, pathInPackage), target);
  } catch (cause) {
    const line = `apt-get install -y --no-install-recommends ${debianPackage}`;
    throw new Error(`The tests need ${name}. As root, type: ${line}`, { cause });
  } finally {
    rmSync(folder, { recursive: true, force: true });
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
  const options = ["-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"];
  withoutStarting(() => aptGet("install", ...options, ...debianPackage.split(" ")));
  const found = find();
  if (found === undefined) throw new Error(`${name} is still missing. Type: ${installLine}`);
  return found;
}
