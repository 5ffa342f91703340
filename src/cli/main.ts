import { version } from "../../gen/version.ts";
import { UsageError } from "./commands/command-error.ts";
import { type FlagValues, type KnownFlag, parseArguments } from "./parse-arguments.ts";
import { type ProgramCommand, programCommands } from "./program-commands.ts";

/** Parses the command line and runs the command. Exits with 0 on success, otherwise with another code. */
export async function main(args: readonly string[]): Promise<void> {
  // Other users must not read the data, its copies, a generated root key or a profile.
  process.umask(0o077);
  const [first] = args;
  if (first === "help" && args.length > 1) return main([...args.slice(1), "--help"]);
  const own = ["help", "version", ...Object.keys(programCommands)];
  if (first !== undefined && !first.startsWith("-") && !own.includes(first)) return runOther(first, args);
  const misplaced = await misplacedFlag(args);
  if (misplaced !== undefined) return exitWithUsage(misplaced);
  const { command, operands, flags, isHelp } = parseCommand(args);
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

/** Says of a flag in front of a command that calls a service that it goes behind it. */
async function misplacedFlag([first = "", ...others]: readonly string[]): Promise<string | undefined> {
  if (!/^--(?!help$|version$)./.test(first)) return undefined;
  const { isClientCommand } = await import("./commands/run-client.ts");
  const name = others.find(isClientCommand);
  const [flag] = first.split("=");
  return name && `${flag} goes behind the command: latchkey ${name} COMMAND ${flag} …`;
}

function parseCommand(args: readonly string[]) {
  try {
    const { operands: words, flags } = parseArguments(args, [...programFlags, ...ownFlags], settingsHint);
    const values: FlagValues = Object.fromEntries(flags.map(({ name, text = true }) => [name, text]));
    const { help, version: isVersion, ...others } = values;
    const [command = "help", ...operands] = words;
    return { command: isVersion ? "version" : command, operands, flags: others, isHelp: help === true };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return exitWithUsage(error.message, args[0]);
  }
}

const programFlags = Object.values(programCommands).flatMap(({ flags = [] }) => flags);
const ownFlags: readonly KnownFlag[] = [{ name: "version" }, { name: "help", short: "h" }];

const settingsHint =
  " here. Flags follow their command; settings come from the environment, such as PORT=8080: docs/configuration.md lists them";

/** Says of a flag that it is another command's. */
function foreignFlag(program: ProgramCommand | undefined, flags: FlagValues): string | undefined {
  const has = (name: string, { flags: own = [] }: Pick<ProgramCommand, "flags">) =>
    own.some((flag) => flag.name === name);
  const foreign = Object.keys(flags).find((name) => !has(name, program ?? {}));
  if (foreign === undefined) return undefined;
  const owners = Object.entries(programCommands).filter(([, command]) => has(foreign, command));
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
