import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { hostOf, isLoopback } from "../../config/hosts.ts";
import { CommandError, UsageError } from "./command-error.ts";
import type { CommandLine } from "./parse-command-line.ts";
import { profileInUse, readProfile } from "./profiles.ts";

/** Where a command goes, and the root key that it shows there. */
export interface Connection {
  readonly url: string;
  readonly rootKey: string | undefined;
  /** For messages: where the root key comes from, or else why there is none and what to do. */
  readonly aboutRootKey: string;
}

const defaultUrl = "http://127.0.0.1:8080";

/**
 * Finds out the address and the root key: from a profile that is named, or else from the environment, or else from the
 * profile in use. They are never mixed, so that the root key of one service is not sent to another.
 */
export function readConnection(
  flags: { readonly [Flag in "url" | "profile"]?: CommandLine[Flag] | undefined },
  environment: NodeJS.ProcessEnv,
): Connection {
  const named = flags.profile ?? (flags.url === undefined ? environment.LATCHKEY_PROFILE : undefined);
  const own = ["LATCHKEY_URL", "LATCHKEY_ROOT_KEY", "LATCHKEY_ROOT_KEY_FILE"].find((name) => environment[name]);
  if (named) {
    if (flags.url !== undefined)
      throw new UsageError("--url and --profile cannot be given together: a profile has a URL");
    if (own !== undefined && flags.profile === undefined) {
      throw new UsageError(`LATCHKEY_PROFILE and ${own} are both set: unset one of them`);
    }
    return connectionOfProfile(environment, named);
  }
  const inUse = flags.url === undefined && own === undefined ? profileInUse(environment) : undefined;
  if (inUse !== undefined) return connectionOfProfile(environment, inUse);
  const url = flags.url ?? (environment.LATCHKEY_URL || defaultUrl);
  return { url, ...(rootKeyOfEnvironment(environment) ?? rootKeyOfDataFolder(url, environment)) };
}

function connectionOfProfile(environment: NodeJS.ProcessEnv, profile: string): Connection {
  const { url, rootKey } = readProfile(environment, profile);
  if (rootKey !== undefined) return { url, rootKey, aboutRootKey: `the root key is from the profile ${profile}` };
  const remedy = `latchkey profile set ${profile} --url ${url} writes it with one`;
  return { url, rootKey, aboutRootKey: `the profile ${profile} has no root key: ${remedy}` };
}

/** Undefined where the root key is encrypted, stays on this machine or is not sent. The URL is one that the client takes. */
export function cleartextWarning({ url, rootKey }: Connection): string | undefined {
  const { protocol, host } = new URL(url);
  if (!rootKey || protocol !== "http:" || isThisMachine(url)) return undefined;
  return `warning: the root key is sent to ${host} in cleartext: use an https:// address unless the network is private`;
}

/** A sentence to put behind the refusal of an address without a scheme, or nothing. Other texts may be a secret. */
export function proposeUrl(typed: string): string {
  if (!/^([\w-]+(\.[\w-]+)*|\[[\da-f:]+\]):\d{1,5}\/?$/i.test(typed)) return "";
  const local = `http://${typed}`;
  return `; did you mean ${isThisMachine(local) ? local : `https://${typed}`}?`;
}

function isThisMachine(url: string): boolean {
  return URL.canParse(url) && isLoopback(hostOf(new URL(url)));
}

type RootKey = Pick<Connection, "rootKey" | "aboutRootKey">;

function rootKeyOfEnvironment(environment: NodeJS.ProcessEnv): RootKey | undefined {
  const { LATCHKEY_ROOT_KEY: text, LATCHKEY_ROOT_KEY_FILE: file } = environment;
  if (text && file)
    throw new UsageError("LATCHKEY_ROOT_KEY and LATCHKEY_ROOT_KEY_FILE are both set: unset one of them");
  // Two keys, while one replaces the other: both are valid, and the new one stays so.
  if (text) return { rootKey: text.split(",")[0]?.trim(), aboutRootKey: "the root key is from LATCHKEY_ROOT_KEY" };
  if (!file) return undefined;
  try {
    return { rootKey: readFirst(file), aboutRootKey: `the root key is from ${file}` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(`the root key cannot be read from LATCHKEY_ROOT_KEY_FILE: ${code}`);
  }
}

/** The key that a first start has generated. It is sent to this machine only. */
function rootKeyOfDataFolder(url: string, environment: NodeJS.ProcessEnv): RootKey {
  if (!isThisMachine(url)) return noRootKey("the key of a data folder is for services on this machine only");
  const name = environment.DATABASE_URL || environment.DATABASE_URL_FILE ? "root-key-postgres" : "root-key";
  const file = join(environment.LATCHKEY_DATA_DIR || "./data", name);
  try {
    return { rootKey: readFirst(file), aboutRootKey: `the root key is from ${file}` };
  } catch (error) {
    return noRootKey(`${resolve(file)} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function noRootKey(whyNoFile: string): RootKey {
  const looked = `LATCHKEY_ROOT_KEY and LATCHKEY_ROOT_KEY_FILE are not set, and ${whyNoFile}`;
  const remedy = "Set LATCHKEY_ROOT_KEY_FILE to a file that holds it, or make a profile with latchkey profile set";
  return { rootKey: undefined, aboutRootKey: `there is no root key: ${looked}. ${remedy}` };
}

function readFirst(file: string): string | undefined {
  return readFileSync(file, "utf8").split(",")[0]?.trim();
}
