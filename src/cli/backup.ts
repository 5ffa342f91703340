import { backUpDataFolder } from "../store/sqlite/backup.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const title = "latchkey cannot back up";

/** Copies the embedded store into a file. */
export async function backUp(file: string): Promise<void> {
  const { dataDir, databaseUrl } = readSettingsOrExit(title).settings;
  if (databaseUrl !== undefined) return exitWithProblems(title, ["the data is in Postgres: copy it with pg_dump"]);
  await backUpDataFolder(dataDir, file).catch((error: unknown) => exitWithProblems(title, error));
  console.log(`backed up to ${file}`);
}
