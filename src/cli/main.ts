import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { backUpDataFolder } from "../store/sqlite/backup.ts";
import { serve } from "./serve.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const usage = `Usage: latchkey [serve]          serve until SIGTERM or SIGINT; settings come from the environment
       latchkey backup FILE     copy the data of LATCHKEY_DATA_DIR to FILE, also while it is being served
       latchkey --version`;

/** Parses the command line and runs the command. Ends the process with 0 when it was done, with another code if not. */
export async function main(args: readonly string[]): Promise<void> {
  const { command, operands } = parseCommand(args);
  switch (command) {
    case "serve":
      return serve();
    case "backup": {
      const { dataDir } = readSettingsOrExit().settings;
      const [target] = operands;
      if (target === undefined || operands.length > 1) return exitWithUsage("backup takes one file");
      return backUpDataFolder(dataDir, target).then(
        () => console.log(`backed up to ${target}`),
        (error: unknown) => exitWithProblems("latchkey cannot back up", error),
      );
    }
    case "version":
      return console.log(packageVersion());
    case "help":
      return console.log(usage);
    default:
      return exitWithUsage(`there is no command ${JSON.stringify(command)}`);
  }
}

function parseCommand(args: readonly string[]): { command: string; operands: string[] } {
  try {
    const options = { version: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const [command = "serve", ...operands] = positionals;
    if (values.help) return { command: "help", operands };
    return { command: values.version ? "version" : command, operands };
  } catch (error) {
    return exitWithUsage((error as Error).message);
  }
}

function exitWithUsage(problem: string): never {
  console.error(`${problem}\n\n${usage}`);
  process.exit(2);
}

function packageVersion(): string {
  // Two folders up in the repository, three in the package, whose JavaScript lives in dist.
  const candidates = ["../../package.json", "../../../package.json"];
  for (const candidate of candidates) {
    try {
      return (JSON.parse(readFileSync(new URL(candidate, import.meta.url), "utf8")) as { version: string }).version;
    } catch {
      // Not there: the next one is.
    }
  }
  return "unknown";
}
