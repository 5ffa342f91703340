import { suggest } from "../../domain/suggest.ts";
import { openTransport } from "../../sdk/transport.ts";
import { type KnownFlag, parseArguments } from "../parse-arguments.ts";
import { secretAsArgument } from "./build-request.ts";
import { type ExitCode, exitCodes, UsageError } from "./command-error.ts";
import { proposeUrl } from "./connection.ts";
import {
  leaveProfile,
  listProfiles,
  profileInUse,
  readProfile,
  removeProfile,
  useProfile,
  writeProfile,
} from "./profiles.ts";
import { processInput as input } from "./read-input.ts";
import { padEnd } from "./screen.ts";

export const profileHelp = `Usage: latchkey profile set NAME --url URL [--root-key @FILE]
       latchkey profile use NAME
       latchkey profile leave
       latchkey profile list
       latchkey profile remove NAME

A profile keeps the address of a service and its root key in a file that only you can read. Commands use it with
--profile NAME, or where LATCHKEY_PROFILE names it. After profile use NAME they use it by themselves, until profile leave;
--url, LATCHKEY_URL or a root key in the environment come before it. The root key is asked for, or read from standard
input; an empty one makes a profile that can verify only.

Example:
  latchkey profile set production --url https://keys.example.com --root-key @root-key.txt`;

interface Action {
  readonly flags?: readonly string[];
  readonly takesName: boolean;
  /** Answers what is printed. */
  run(name: string, textOf: (flag: string) => string | undefined): Promise<string> | string;
}

const actions: Readonly<Record<string, Action>> = {
  set: { takesName: true, flags: ["url", "root-key"], run: setProfile },
  use: {
    takesName: true,
    run: (name) => {
      useProfile(process.env, name);
      return `using ${name}`;
    },
  },
  leave: {
    takesName: false,
    run: () => {
      leaveProfile(process.env);
      return "using no profile";
    },
  },
  list: { takesName: false, run: describeProfiles },
  remove: {
    takesName: true,
    run: (name) => {
      removeProfile(process.env, name);
      return `removed ${name}`;
    },
  },
};

const knownFlags: readonly KnownFlag[] = [
  { name: "url", value: "URL" },
  { name: "root-key", value: "@FILE" },
  { name: "help", short: "h" },
];

export const profileActions = Object.keys(actions);

/** Runs `latchkey profile …`. */
export async function runProfileCommand(args: readonly string[]): Promise<ExitCode> {
  const { operands, flags } = parseArguments(args, knownFlags);
  const [typed = "", name = "", ...others] = operands;
  if (flags.some((given) => given.name === "help")) {
    process.stdout.write(`${profileHelp}\n`);
    return exitCodes.done;
  }
  if (!profileActions.includes(typed)) throw wrongUse(`${profileActions.join(", ")}${suggest(typed, profileActions)}`);
  const action = actions[typed] as Action;
  if (flags.some((given) => !action.flags?.includes(given.name))) throw wrongUse(`${typed} without flags`);
  if (others.length > 0 || action.takesName !== (name !== ""))
    throw wrongUse(`${typed} ${action.takesName ? "with one" : "without a"} name`);
  const printed = await action.run(name, (flag) => flags.find((given) => given.name === flag)?.text);
  process.stdout.write(`${printed}\n`);
  return exitCodes.done;
}

async function setProfile(name: string, textOf: (flag: string) => string | undefined): Promise<string> {
  const url = textOf("url");
  if (url === undefined) throw wrongUse("set with --url");
  const rootKey = await readRootKey(textOf("root-key"));
  checkProfile(url, rootKey);
  const file = writeProfile(process.env, name, { url, rootKey: rootKey || undefined });
  if (rootKey === "") process.stderr.write("no root key was given: commands with this profile can verify only\n");
  return `written to ${file}`;
}

async function readRootKey(source: string | undefined): Promise<string> {
  if (source === undefined) return input.readSecret("root key (not shown): ");
  if (!/^@./.test(source)) throw secretAsArgument("root-key");
  return (await input.read("root-key", source)).trim();
}

/** By what would use them. */
function checkProfile(baseUrl: string, rootKey: string): void {
  try {
    openTransport({ baseUrl, rootKey: rootKey || undefined });
  } catch (error) {
    const { message } = error as Error;
    const proposal = message.startsWith("baseUrl") ? proposeUrl(baseUrl) : "";
    throw new UsageError(message.replace("baseUrl", "--url").replace("rootKey", "the root key") + proposal);
  }
}

function describeProfiles(): string {
  const names = listProfiles(process.env);
  const width = Math.max(4, ...names.map((name) => name.length));
  const inUse = profileInUse(process.env);
  const rows = names.map((name) => [name, describeProfile(name) + (name === inUse ? " (in use)" : "")] as const);
  return [["NAME", "URL"] as const, ...rows].map(([name, text]) => `${padEnd(name, width)}  ${text}`).join("\n");
}

function describeProfile(name: string): string {
  try {
    const { url, rootKey } = readProfile(process.env, name);
    return rootKey === undefined ? `${url} (without root key)` : url;
  } catch (error) {
    return (error as Error).message;
  }
}

function wrongUse(wanted: string): UsageError {
  return new UsageError(`latchkey profile takes ${wanted}\nlatchkey profile --help tells how it is used`);
}
