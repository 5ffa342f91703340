import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { parseArgs } from "node:util";
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
  if (isHelp) return console.log(await (program?.help?.() ?? usage()));
  if (command === "version") return console.log(packageVersion());
  if (command === "help") return console.log(await usage());
  if (program === undefined) return exitWithUsage(`flags follow the command: latchkey ${command} …`);
  const problem = foreignFlag(program, flags) ?? program.check(operands);
  if (problem !== undefined) return exitWithUsage(problem);
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
    const { help, version, ...flags } = values as ProgramFlags;
    const [command = "serve", ...operands] = positionals;
    return { command: version ? "version" : command, operands, flags, isHelp: help === true };
  } catch (error) {
    return exitWithUsage((error as Error).message);
  }
}

/** Says of a flag that it is another command's. */
function foreignFlag(program: ProgramCommand, flags: ProgramFlags): string | undefined {
  const foreign = Object.keys(flags).find((name) => !Object.hasOwn(program.flags ?? {}, name));
  if (foreign === undefined) return undefined;
  const owners = Object.entries(programCommands).filter(([, command]) => Object.hasOwn(command.flags ?? {}, foreign));
  return `--${foreign} is for ${owners.map(([name]) => name).join(" and ")}`;
}

/** The help of the whole program. What calls a service is listed from the contract. */
async function usage(): Promise<string> {
  const { clientUsage } = await import("./commands/help.ts");
  const own = Object.values(programCommands).flatMap((command) => command.usage);
  const lines = own.map(
    ([typed, does]) => (typed.startsWith("-") ? `  ${typed}` : `latchkey ${typed}`).padEnd(25) + does,
  );
  return `Usage: ${[...lines, "latchkey --version"].join("\n       ")}\n\n${clientUsage()}`;
}

async function exitWithUsage(problem: string): Promise<never> {
  console.error(`${problem}\n\n${await usage()}`);
  process.exit(2);
}

function packageVersion(): string {
  // Looked for, because it is one folder further up from the sources than from dist.
  const file = findPackageJSON(import.meta.url) as string;
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
