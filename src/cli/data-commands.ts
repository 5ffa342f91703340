import { systemClock } from "../ambient/clock.ts";
import { createSystemRandom } from "../ambient/random.ts";
import type { Settings } from "../config/settings.ts";
import { createProgress } from "./progress.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

/* Commands on the store that the settings name. Each loads what it needs. */

/** Runs one. What goes wrong is printed in words, and ends the process. */
async function onData(title: string, command: (settings: Settings) => Promise<void>): Promise<void> {
  const { settings } = readSettingsOrExit(title);
  await command(settings).catch((error: unknown) => exitWithProblems(title, error));
}

/** Copies the embedded store into a file. */
export function backUp(file: string): Promise<void> {
  const title = "latchkey cannot back up";
  return onData(title, async ({ dataDir, databaseUrl }) => {
    if (databaseUrl !== undefined) return exitWithProblems(title, ["the data is in Postgres: copy it with pg_dump"]);
    const { backUpDataFolder } = await import("../store/sqlite/backup.ts");
    await backUpDataFolder(dataDir, file);
    console.log(`backed up to ${file}`);
  });
}

/** Puts a backup into the data folder, which must have no data. */
export function restore(file: string): Promise<void> {
  const title = "latchkey cannot restore";
  return onData(title, async ({ dataDir, databaseUrl }) => {
    if (databaseUrl !== undefined)
      return exitWithProblems(title, ["the data is in Postgres: restore it with pg_restore"]);
    const { restoreDataFolder } = await import("../store/sqlite/restore.ts");
    const progress = createProgress(process.stderr);
    const epoch = Buffer.from(createSystemRandom().bytes(12)).toString("base64url");
    await restoreDataFolder(dataDir, file, { epoch, onProgress: progress.update }).finally(progress.end);
    console.log(`restored to ${dataDir}`);
  });
}

/** Copies the embedded store to Postgres, shows its progress, and prints the number of rows on both sides. */
export function copy(): Promise<void> {
  const title = "latchkey cannot copy";
  return onData(title, async (settings) => {
    const { copyTo, databaseUrl } = settings;
    const problems: string[] = [];
    if (copyTo === undefined) problems.push("LATCHKEY_COPY_TO must name the Postgres to copy to");
    if (databaseUrl !== undefined)
      problems.push("DATABASE_URL must not be set: the data folder is what is copied. Postgres is copied with pg_dump");
    if (copyTo === undefined || problems.length > 0) return exitWithProblems(title, problems);

    const { copyDataFolder } = await import("../server/copy.ts");
    const progress = createProgress(process.stderr);
    const options = { settings, copyTo, clock: systemClock, random: createSystemRandom(), onProgress: progress.update };
    const counts = await copyDataFolder(options).finally(progress.end);
    const lines = [["table", "source", "target"], ...counts.map(Object.values)] as (string | number)[][];
    for (const [table, source, target] of lines)
      console.log(String(table).padEnd(16) + String(source).padStart(12) + String(target).padStart(12));
    if (counts.some(({ source, target }) => source !== target)) {
      const problem = "the target does not have the rows of the source, and is not served: empty it, and copy again";
      return exitWithProblems("latchkey has not finished the copy", [problem]);
    }
    console.log("The copy is finished. Serve it with DATABASE_URL: this data folder is not served any more.");
  });
}

/** Lists the changes of the schema, or applies those that the store lacks. */
export function migrate(action: "status" | "up"): Promise<void> {
  return onData("latchkey cannot migrate", async (settings) => {
    const { applyMigrations, readMigrations } = await import("../server/migrations.ts");
    if (action === "up") {
      const applied = await applyMigrations(settings, systemClock, {
        onIndexBuild: (index, by) => console.error(`the index ${index} is being built by ${by}`),
        onUpgrade: (table, rows, total) => console.error(`${table}: ${rows} of ${total} rows are upgraded`),
      });
      console.log(applied.length === 0 ? "nothing to apply" : applied.map((name) => `applied ${name}`).join("\n"));
    } else {
      const { applied, missing } = await readMigrations(settings, systemClock);
      for (const name of applied) console.log(`has    ${name}`);
      for (const name of missing) console.log(`lacks  ${name}`);
    }
  });
}
