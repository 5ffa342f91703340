import { systemClock } from "../ambient/clock.ts";
import { createSystemRandom } from "../ambient/random.ts";
import { createProgress } from "./progress.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const title = "latchkey cannot copy";

/** Copies the embedded store to Postgres, tells its progress, and prints the number of rows on both sides. */
export async function copy(): Promise<void> {
  const { settings } = readSettingsOrExit(title);
  const { copyTo, databaseUrl } = settings;
  const problems: string[] = [];
  if (copyTo === undefined) problems.push("LATCHKEY_COPY_TO must name the Postgres to copy to");
  if (databaseUrl !== undefined)
    problems.push("DATABASE_URL must not be set: the data folder is what is copied. Postgres is copied with pg_dump");
  if (copyTo === undefined || problems.length > 0) return exitWithProblems(title, problems);

  const { copyDataFolder } = await import("../server/copy.ts");
  const progress = createProgress(process.stderr);
  const options = { settings, copyTo, clock: systemClock, random: createSystemRandom(), onProgress: progress.update };
  const counts = await copyDataFolder(options)
    .finally(progress.end)
    .catch((error: unknown) => exitWithProblems(title, error));
  const lines = [["table", "source", "target"], ...counts.map(Object.values)] as (string | number)[][];
  for (const [table, source, target] of lines)
    console.log(String(table).padEnd(16) + String(source).padStart(12) + String(target).padStart(12));
  if (counts.some(({ source, target }) => source !== target)) {
    const problem = "the target does not have the rows of the source, and is not served: empty it, and copy again";
    return exitWithProblems("latchkey has not finished the copy", [problem]);
  }
  console.log("The copy is finished. Serve it with DATABASE_URL: this data folder is not served any more.");
}
