import { systemClock } from "../ambient/clock.ts";
import { applyMigrations, readMigrations } from "../server/migrations.ts";
import { exitWithProblems, readSettingsOrExit } from "./start-problems.ts";

const title = "latchkey cannot migrate";

/** Lists the changes of the schema, or applies those that the store lacks. */
export async function migrate(action: "status" | "up"): Promise<void> {
  const { settings } = readSettingsOrExit(title);
  try {
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
  } catch (error) {
    exitWithProblems(title, error);
  }
}
