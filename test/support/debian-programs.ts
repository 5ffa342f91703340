import { type ExecFileSyncOptions, execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
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

const lockFile = join(tmpdir(), "latchkey-apt.lock");

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

/**
 * Copies one program out of Debian's package to `target`, where installing it would bring far more than is needed. Nothing of
 * it is set up.
 */
export function unpackProgram({ name, debianPackage }: Programs, pathInPackage: string, target: string): void {
  console.log(`The tests need ${name}, which is missing: taking it out of Debian's package ${debianPackage}.`);
  const folder = mkdtempSync(`${target}-`);
  try {
    aptGet(`apt-get -q download ${debianPackage}`, { cwd: folder, stdio: "pipe" });
    execFileSync("sh", ["-c", `dpkg-deb --fsys-tarfile *.deb | tar -x ./${pathInPackage}`], { cwd: folder });
    renameSync(join(folder, pathInPackage), target);
  } catch (cause) {
    const line = `apt-get install -y --no-install-recommends ${debianPackage}`;
    throw new Error(`The tests need ${name}. As root, type: ${line}`, { cause });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a command of apt-get, again with a new list of packages if the list is missing or too old. Several test files may need
 * a program at the same time, and apt-get does not wait for another one, so `flock` does. Without systemd, Debian's packages
 * ask policy-rc.d whether they may start what they bring.
 */
function aptGet(command: string, options: ExecFileSyncOptions): void {
  const policy = "/usr/sbin/policy-rc.d";
  const script = `
    if [ "$(id -u)" = 0 ] && [ ! -e ${policy} ]; then
      printf '#!/bin/sh\nexit 101\n' > ${policy} && chmod 755 ${policy} && trap 'rm ${policy}' EXIT
    fi
    ${command} 2>/dev/null || { apt-get -q update && ${command}; }`;
  execFileSync("flock", [lockFile, "sh", "-c", script], options);
}

function install({ name, debianPackage, find, prepare }: Programs): string {
  const installLine = `apt-get install -y --no-install-recommends ${debianPackage}`;
  const mayInstall = process.getuid?.() === 0 && isExecutable("/usr/bin/apt-get");
  if (!mayInstall) throw new Error(`The tests need ${name}. As root, type: ${installLine}`);
  console.log(`The tests need ${name}, which is missing: installing Debian's package.`);
  prepare?.();
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const options = "-y --no-install-recommends -o Dpkg::Options::=--force-confold";
  aptGet(`apt-get -q install ${options} ${debianPackage}`, { env, stdio: ["ignore", "ignore", "inherit"] });
  const found = find();
  if (found === undefined) throw new Error(`${name} is still missing. Type: ${installLine}`);
  return found;
}
