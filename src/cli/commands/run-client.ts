import { suggest } from "../../domain/suggest.ts";
import { CommandError, type ExitCode } from "./command-error.ts";
import { groups } from "./groups.ts";
import { findGroup, runCommand } from "./run-command.ts";

/** Commands of this folder that are no group of methods. Each is loaded when it is used. */
const others: Readonly<Record<string, (args: readonly string[]) => Promise<ExitCode>>> = {
  profile: async (args) => (await import("./profile-command.ts")).runProfileCommand(args),
  completion: async (args) => (await import("./completion.ts")).runCompletion(args),
};

/** Runs a command that calls the service, or prepares such calls. Returns the exit code; undefined: no such command. */
export async function runClient(args: readonly string[]): Promise<ExitCode | undefined> {
  const [name = "", ...rest] = args;
  // A reader that has seen enough, such as `head`, is no failure. A full disk is one.
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => process.exit(code === "EPIPE" ? 0 : 1));
  try {
    const group = findGroup(name);
    return await (group === undefined ? others[name]?.(rest) : runCommand(group, rest));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
}

export function isClientCommand(name: string): boolean {
  return findGroup(name) !== undefined || Object.hasOwn(others, name);
}

/** Completes a sentence that says that there is no such command. */
export function suggestCommand(typed: string, otherNames: readonly string[]): string {
  return suggest(typed, [...otherNames, ...Object.keys(others), ...groups.map(({ name }) => name)]);
}
