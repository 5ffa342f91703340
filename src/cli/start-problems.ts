import { existsSync, readFileSync } from "node:fs";
import { type Environment, type ReadSettings, readSettings, SettingsError } from "../config/settings.ts";
import { RootKeyRetired } from "../domain/root-key.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { DatabaseRefused } from "../store/postgres/pg-error.ts";
import { SchemaTooNew, StoreEmpty } from "../store/sql/migrate.ts";
import { claimDataFolder, DataFolderError } from "../store/sqlite/data-folder.ts";

/** Reads the environment and its overrides. If anything is wrong, prints all problems and ends the process. */
export function readSettingsOrExit(title: string, overrides: Environment = {}): ReadSettings {
  try {
    return readSettings({ ...process.env, ...overrides }, (path) => readFileSync(path, "utf8"));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const folderProblem = error.dataDir === undefined ? undefined : problemWithFolder(error.dataDir);
    return exitWithProblems(title, [...error.problems, ...error.warnings, ...(folderProblem ?? [])]);
  }
}

/** Prints the problem in words and ends the process. A stack trace is printed only for a bug of ours. */
export function exitWithProblems(title: string, problem: unknown): never {
  const problems = Array.isArray(problem) ? (problem as string[]) : [describe(problem)];
  console.error(`${title}:\n${problems.map((line) => `  - ${line}`).join("\n")}`);
  process.exit(1);
}

function describe(problem: unknown): string {
  const inWords = [DataFolderError, DatabaseRefused, RootKeyRetired, SchemaTooNew, StoreEmpty];
  if (inWords.some((kind) => problem instanceof kind)) return (problem as Error).message;
  if (problem instanceof Unavailable && !isOfSqlite(problem.cause)) {
    const { code } = (problem.cause ?? {}) as { code?: string };
    return code === undefined ? problem.message : `${problem.message}: ${code}`;
  }
  if (problem instanceof Error && problem.cause !== undefined) return describe(problem.cause);
  const { code, address, port } = problem as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === "EADDRINUSE")
    return `${address}:${port} is in use by another process; PORT and LATCHKEY_INTERNAL_PORT set others`;
  if (code === "EACCES" && port !== undefined) return `${address}:${port} may not be used by this user`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `this machine has no address ${address ?? "of that name"}`;
  if (isOfSqlite(problem)) return `the data cannot be read or written: ${(problem as Error).message}`;
  return problem instanceof Error ? (problem.stack ?? problem.message) : String(problem);
}

function isOfSqlite(problem: unknown): boolean {
  return (problem as { code?: unknown } | undefined)?.code === "ERR_SQLITE_ERROR";
}

/** A folder in use is reported together with wrong settings, so that one attempt shows all problems. */
function problemWithFolder(path: string): string[] | undefined {
  if (!existsSync(path)) return undefined;
  try {
    claimDataFolder(path).release();
    return undefined;
  } catch (error) {
    return [describe(error)];
  }
}
