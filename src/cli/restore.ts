import { createSystemRandom } from "../ambient/random.ts";
import { restoreDataFolder } from "../store/sqlite/restore.ts";
import { createProgress } from "./progress.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const title = "latchkey cannot restore";

/** Puts a backup into the data folder, which must have no data. */
export async function restore(file: string): Promise<void> {
  const { dataDir, databaseUrl } = readSettingsOrExit(title).settings;
  if (databaseUrl !== undefined)
    return exitWithProblems(title, ["the data is in Postgres: restore it with pg_restore"]);
  const progress = createProgress(process.stderr);
  const epoch = Buffer.from(createSystemRandom().bytes(12)).toString("base64url");
  await restoreDataFolder(dataDir, file, { epoch, onProgress: progress.update })
    .finally(progress.end)
    .catch((error: unknown) => exitWithProblems(title, error));
  console.log(`restored to ${dataDir}`);
}
