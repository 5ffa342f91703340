import { sql } from "kysely";
import type { SqlEngine } from "./sql-engine.ts";

const dayMs = 86_400_000;
/** Rows looked at in one transaction. */
const step = 1000;

/**
 * Removes free-standing windows that have been over for a day. They are walked in the order of their subjects: an index by their
 * ends would have to be written with every new window. What is needed again is made again.
 */
export async function tidyWindows({ db }: SqlEngine, nowMs: number): Promise<void> {
  for (let after = "f/"; ; ) {
    const rows = await db
      .selectFrom("permit_windows")
      .select("subject")
      .where("subject", ">", after)
      .where("subject", "<", "f0")
      .orderBy("subject")
      .limit(step)
      .execute();
    const last = rows.at(-1)?.subject;
    if (last === undefined) return;
    await db
      .deleteFrom("permit_windows")
      .where("subject", ">", after)
      .where("subject", "<=", last)
      .where("ends_at_ms", "<", sql.lit(nowMs - dayMs))
      .execute();
    after = last;
  }
}
