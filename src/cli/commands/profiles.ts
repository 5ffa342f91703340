import { closeSync, fstatSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { suggest } from "../../domain/suggest.ts";
import { claimPrivateFolder } from "../compile-cache.ts";
import { CommandError, UsageError } from "./command-error.ts";

/** Where a service is, and the root key that goes with it: neither is used without the other. */
export interface Profile {
  readonly url: string;
  readonly rootKey?: string | undefined;
}

type Environment = NodeJS.ProcessEnv;

const ending = ".json";
/** Beside the profiles: the name of the one in use. */
const inUseFile = "in-use";

/** Throws if there is none of that name, or others can read it. */
export function readProfile(environment: Environment, name: string): Profile {
  const file = fileOf(environment, name);
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT") throw new CommandError(`the profile ${name} cannot be read: ${code}`);
    throw new UsageError(`there is no profile ${name}${suggest(name, listProfiles(environment))}`);
  }
  try {
    // Checks the file that is open: nobody can replace it after the check.
    const { mode, uid } = fstatSync(fd);
    if ((mode & 0o077) !== 0 || uid !== process.getuid?.()) {
      throw new CommandError(`other users can read the profile ${name}: type chmod 600 '${file}', as its owner`);
    }
    const profile = JSON.parse(readFileSync(fd, "utf8")) as Profile | null;
    if (typeof profile?.url !== "string") throw new Error("a profile has a URL");
    return profile;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`the profile ${name} is damaged: make it again with latchkey profile set ${name}`);
  } finally {
    closeSync(fd);
  }
}

/** Writes a profile that only this user can read. One of the same name is replaced. */
export function writeProfile(environment: Environment, name: string, profile: Profile): string {
  return writePrivately(environment, fileOf(environment, name), JSON.stringify(profile));
}

function writePrivately(environment: Environment, file: string, text: string): string {
  const folder = configFolder(environment);
  if (claimPrivateFolder(folder) === undefined) {
    throw new CommandError(`${folder} must be a folder of mode 0700 that only you can replace: nothing was written`);
  }
  const written = `${file}.new`;
  rmSync(written, { force: true });
  writeFileSync(written, `${text}\n`, { mode: 0o600, flag: "wx", flush: true });
  renameSync(written, file);
  return file;
}

export function removeProfile(environment: Environment, name: string): void {
  checkExists(environment, name);
  const isInUse = profileInUse(environment) === name;
  rmSync(fileOf(environment, name));
  if (isInUse) leaveProfile(environment);
}

/** Makes it the profile of commands that name none. */
export function useProfile(environment: Environment, name: string): void {
  checkExists(environment, name);
  writePrivately(environment, join(configFolder(environment), inUseFile), name);
}

/** No profile is in use any more. */
export function leaveProfile(environment: Environment): void {
  rmSync(join(configFolder(environment), inUseFile), { force: true });
}

/**
 * The profile of commands that name none. Undefined if there is no such file, or no home for it. Throws if it cannot be read:
 * a command must not go to another service because of that.
 */
export function profileInUse(environment: Environment): string | undefined {
  let file: string | undefined;
  let problem = "it is empty";
  try {
    file = join(configFolder(environment), inUseFile);
    const name = readFileSync(file, "utf8").trim();
    if (name !== "") return name;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    // ENOTDIR: users of services often have /dev/null as their home.
    if (file === undefined || ["ENOENT", "ENOTDIR"].includes(code)) return undefined;
    problem = code;
  }
  const remedy = "latchkey profile leave removes this file";
  throw new CommandError(`the profile in use cannot be read from ${file}: ${problem}. ${remedy}`);
}

function checkExists(environment: Environment, name: string): void {
  const names = listProfiles(environment);
  if (!names.includes(name)) throw new UsageError(`there is no profile ${name}${suggest(name, names)}`);
}

export function listProfiles(environment: Environment): string[] {
  try {
    const files = readdirSync(configFolder(environment)).filter((file) => file.endsWith(ending));
    return files.map((file) => file.slice(0, -ending.length)).sort();
  } catch {
    return [];
  }
}

export function configFolder({ XDG_CONFIG_HOME: home }: Environment): string {
  return join(home && isAbsolute(home) ? home : join(homedir(), ".config"), "latchkey");
}

function fileOf(environment: Environment, name: string): string {
  if (!/^\w[\w.-]{0,63}$/.test(name)) {
    throw new UsageError(
      "the name of a profile is 1 to 64 of A-Z a-z 0-9 _ . -, beginning with a letter, a digit or _",
    );
  }
  return join(configFolder(environment), `${name}${ending}`);
}
