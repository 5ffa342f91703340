import { groups } from "../../../gen/latchkey/v1/commands.ts";
import { CommandError, type ExitCode } from "./command-error.ts";
import { suggest } from "./nearest-name.ts";
import { findGroup, runCommand } from "./run-command.ts";

/** Commands of this folder that are no group of methods. Each is loaded when it is used. */
const others: Readonly<Record<string, (args: readonly string[]) => Promise<ExitCode>>> = {
  profile: async (args) => (await import("./profile-command.ts")).runProfileCommand(args),
  completion: async (args) => (await import("./completion.ts")).runCompletion(args),
};

/** Runs a command that calls the service, or prepares such calls. Returns the exit code; undefined: no such command. */
export async function runClient(args: readonly string[]): Promise<ExitCode | undefined> {
  const [name = "", ...rest] = args;
  // Whoever reads the output has seen enough, such as `head`.
  process.stdout.on("error", () => process.exit(0));
  try {
    const group = findGroup(name);
    return await (group === undefined ? others[name]?.(rest) : runCommand(group, rest));
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
}

/** Completes a sentence that says that there is no such command. */
export function suggestCommand(typed: string, otherNames: readonly string[]): string {
  return suggest(typed, [...otherNames, ...Object.keys(others), ...groups.map(({ name }) => name)]);
}
