import { existsSync, readFileSync } from "node:fs";
import { readSettings, type Settings, SettingsError } from "../config/settings.ts";
import { SchemaTooNew } from "../store/sql/migrate.ts";
import { claimDataFolder, DataFolderError } from "../store/sqlite/data-folder.ts";

/** Reads the environment. When anything about it is wrong, prints all of it and ends the process. */
export function readSettingsOrExit(): { settings: Settings; warnings: readonly string[] } {
  try {
    return readSettings(process.env, (path) => readFileSync(path, "utf8"));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const folderProblem = error.dataDir === undefined ? undefined : problemWithFolder(error.dataDir);
    return exitWithProblems("latchkey cannot start", [...error.problems, ...(folderProblem ?? [])]);
  }
}

/** Ends the process with what is wrong, in words. A stack trace is for a mistake of ours only. */
export function exitWithProblems(title: string, problem: unknown): never {
  const problems = Array.isArray(problem) ? (problem as string[]) : [describe(problem)];
  console.error(`${title}:\n${problems.map((line) => `  - ${line}`).join("\n")}`);
  process.exit(1);
}

function describe(problem: unknown): string {
  if (problem instanceof DataFolderError || problem instanceof SchemaTooNew) return problem.message;
  const { code, address, port } = problem as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === "EADDRINUSE") return `${address}:${port} is in use by another process`;
  if (code === "EACCES" && port !== undefined) return `${address}:${port} may not be used by this user`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return `this machine has no address ${address ?? "of that name"}`;
  return problem instanceof Error ? (problem.stack ?? problem.message) : String(problem);
}

/** A folder that is in use is told of together with wrong settings, so that one try shows everything. */
function problemWithFolder(path: string): string[] | undefined {
  if (!existsSync(path)) return undefined;
  try {
    claimDataFolder(path).release();
    return undefined;
  } catch (error) {
    return [describe(error)];
  }
}
