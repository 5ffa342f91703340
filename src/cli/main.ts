import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { parseArgs } from "node:util";
import { systemClock } from "../ambient/clock.ts";
import { backUpDataFolder } from "../store/sqlite/backup.ts";
import { copy } from "./copy.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const usage = `Usage: latchkey [serve]          serve until SIGTERM or SIGINT; settings come from the environment
         --role ROLE            all (default), edge or coordinator; the same as LATCHKEY_ROLE
       latchkey backup FILE     copy the data of LATCHKEY_DATA_DIR to FILE, also while it is being served
       latchkey copy            copy the data of LATCHKEY_DATA_DIR to the Postgres that LATCHKEY_COPY_TO names
       latchkey doctor          check these settings, or a service that runs; --help tells more
       latchkey migrate status  list which changes of the schema the store has and lacks
       latchkey migrate up      apply those it lacks, as every start does
       latchkey --version`;

/** Parses the command line and runs the command. Exits with 0 on success, otherwise with another code. */
export async function main(args: readonly string[]): Promise<void> {
  // Other users must not read the data, its copies or a generated root key.
  process.umask(0o077);
  // Loaded only if used: it needs every engine. It has options of its own.
  if (args[0] === "doctor") return (await import("./doctor.ts")).doctor(args.slice(1));
  const { command, operands, role } = parseCommand(args);
  if (role !== undefined && command !== "serve") return exitWithUsage("--role is for serve");
  const [target] = operands;
  switch (command) {
    case "serve":
      if (operands.length > 0) return exitWithUsage("serve takes no operands: settings come from the environment");
      // Loaded only if used: it takes most of the time that other commands would need.
      return (await import("./serve.ts")).serve(role);
    case "backup": {
      if (target === undefined || operands.length > 1) return exitWithUsage("backup takes one file");
      const { dataDir, databaseUrl } = readSettingsOrExit("latchkey cannot back up").settings;
      if (databaseUrl !== undefined) {
        return exitWithProblems("latchkey cannot back up", ["the data is in Postgres: copy it with pg_dump"]);
      }
      return backUpDataFolder(dataDir, target).then(
        () => console.log(`backed up to ${target}`),
        (error: unknown) => exitWithProblems("latchkey cannot back up", error),
      );
    }
    case "copy":
      if (operands.length > 0) return exitWithUsage("copy takes no operands: LATCHKEY_COPY_TO names the target");
      return copy();
    case "migrate":
      if ((target !== "status" && target !== "up") || operands.length > 1) {
        return exitWithUsage("migrate takes status or up");
      }
      return migrate(target).catch((error: unknown) => exitWithProblems("latchkey cannot migrate", error));
    case "version":
      return console.log(packageVersion());
    case "help":
      return console.log(usage);
    default:
      return exitWithUsage(`there is no command ${JSON.stringify(command)}`);
  }
}

async function migrate(action: "status" | "up"): Promise<void> {
  const { settings } = readSettingsOrExit("latchkey cannot migrate");
  // This loads both database engines. A server needs only one of them.
  const { applyMigrations, readMigrations } = await import("../server/migrations.ts");
  if (action === "up") {
    const applied = await applyMigrations(settings, systemClock, (index, by) =>
      console.error(`the index ${index} is being built by ${by}`),
    );
    console.log(applied.length === 0 ? "nothing to apply" : applied.map((name) => `applied ${name}`).join("\n"));
  } else {
    const { applied, missing } = await readMigrations(settings, systemClock);
    for (const name of applied) console.log(`has    ${name}`);
    for (const name of missing) console.log(`lacks  ${name}`);
  }
}

function parseCommand(args: readonly string[]): { command: string; operands: string[]; role?: string | undefined } {
  try {
    const options = {
      version: { type: "boolean" },
      help: { type: "boolean", short: "h" },
      role: { type: "string" },
    } as const;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    const [command = "serve", ...operands] = positionals;
    if (values.help) return { command: "help", operands };
    return { command: values.version ? "version" : command, operands, role: values.role };
  } catch (error) {
    return exitWithUsage((error as Error).message);
  }
}

function exitWithUsage(problem: string): never {
  console.error(`${problem}\n\n${usage}`);
  process.exit(2);
}

function packageVersion(): string {
  // Looked for, because it is one folder further up from the sources than from dist.
  const file = findPackageJSON(import.meta.url) as string;
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
