import { parseArgs } from "node:util";
import { version } from "../../gen/version.ts";
import { type ProgramCommand, programCommands } from "./program-commands.ts";
import type { ProgramFlags } from "./program-flags.ts";

/** Parses the command line and runs the command. Exits with 0 on success, otherwise with another code. */
export async function main(args: readonly string[]): Promise<void> {
  // Other users must not read the data, its copies, a generated root key or a profile.
  process.umask(0o077);
  const [first] = args;
  if (first === "help" && args.length > 1) return main([...args.slice(1), "--help"]);
  const own = ["help", "version", ...Object.keys(programCommands)];
  if (first !== undefined && !first.startsWith("-") && !own.includes(first)) return runOther(first, args);
  const { command, operands, flags, isHelp } = await parseCommand(args);
  const program = programCommands[command];
  if (isHelp) return console.log(await (program === undefined ? usage() : helpOf(program)));
  if (command === "version") return console.log(version);
  const problem = foreignFlag(program, flags) ?? program?.check(operands);
  if (problem !== undefined) return exitWithUsage(problem, command);
  if (command === "help") return console.log(await usage());
  if (program === undefined) return exitWithUsage(`flags follow the command: latchkey ${command} …`);
  await program.run(operands, flags);
}

/** Commands that call a service load nothing of the server, and the server nothing of them. */
async function runOther(name: string, args: readonly string[]): Promise<void> {
  const { runClient, suggestCommand } = await import("./commands/run-client.ts");
  const exitCode = await runClient(args);
  if (exitCode === undefined) {
    const suggestion = suggestCommand(name, Object.keys(programCommands));
    return exitWithUsage(`there is no command ${JSON.stringify(name)}${suggestion}`);
  }
  // Not `process.exit`, which would cut off output that a pipe has not taken yet.
  process.exitCode = exitCode;
}

interface ParsedCommand {
  readonly command: string;
  readonly operands: readonly string[];
  readonly flags: ProgramFlags;
  readonly isHelp: boolean;
}

async function parseCommand(args: readonly string[]): Promise<ParsedCommand> {
  try {
    const ofCommands = Object.values(programCommands).map((command) => command.flags ?? {});
    const options = {
      ...Object.assign({}, ...ofCommands),
      version: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    };
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const { help, version: isVersion, ...flags } = values as ProgramFlags;
    const [command = "help", ...operands] = positionals;
    return { command: isVersion ? "version" : command, operands, flags, isHelp: help === true };
  } catch (error) {
    return exitWithUsage(describeParseError(error as NodeJS.ErrnoException), args[0]);
  }
}

/** Node's own words for an unknown flag are about arguments that begin with a dash, which no command takes. */
function describeParseError({ code, message }: NodeJS.ErrnoException): string {
  const [, flag] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION" || flag === undefined) return message;
  const settings = "settings come from the environment, such as PORT=8080: docs/configuration.md lists them";
  return `there is no flag ${flag} here. Flags follow their command; ${settings}`;
}

/** Says of a flag that it is another command's. */
function foreignFlag(program: ProgramCommand | undefined, flags: ProgramFlags): string | undefined {
  const foreign = Object.keys(flags).find((name) => !Object.hasOwn(program?.flags ?? {}, name));
  if (foreign === undefined) return undefined;
  const owners = Object.entries(programCommands).filter(([, command]) => Object.hasOwn(command.flags ?? {}, foreign));
  return `--${foreign} is for ${owners.map(([name]) => name).join(" and ")}: it follows the command`;
}

/** The help of one command. */
async function helpOf({ help, usage: own, details = "" }: ProgramCommand): Promise<string> {
  return help === undefined ? `Usage: ${usageLines(own).join("\n       ")}\n\n${details}`.trimEnd() : help();
}

/** The help of the whole program. What calls a service is listed from the contract. */
async function usage(): Promise<string> {
  const { clientUsage } = await import("./commands/help.ts");
  const own = Object.values(programCommands).flatMap((command) => command.usage);
  return `Usage: ${[...usageLines(own), "latchkey --version"].join("\n       ")}\n\n${clientUsage()}`;
}

function usageLines(usage: ProgramCommand["usage"]): string[] {
  return usage.map(([typed, does]) => (typed.startsWith("-") ? `  ${typed}` : `latchkey ${typed}`).padEnd(25) + does);
}

/** Says how to get the help of the command, if it is one of ours, or that of the program. */
function exitWithUsage(problem: string, command = ""): never {
  const typed = Object.hasOwn(programCommands, command) ? `latchkey ${command}` : "latchkey";
  console.error(`${problem}\n${typed} --help tells how it is used`);
  process.exit(2);
}
