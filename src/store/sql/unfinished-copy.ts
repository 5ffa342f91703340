import type { SqlEngine } from "./sql-engine.ts";

/*
 * The table `unfinished_copy` has at most one row. In a target of `latchkey copy` it says that the copy is not finished:
 * such a database is not served. In the source it says that the source has not been served since that copy was begun, so
 * that the copy can be continued.
 */

/** The id of the copy. */
export async function findUnfinishedCopy({ db }: SqlEngine): Promise<string | undefined> {
  const row = await db.selectFrom("unfinished_copy").select("id").executeTakeFirst();
  return row?.id;
}

/** In the source, when a copy begins. */
export async function noteCopyBegun({ db, atomically }: SqlEngine, id: string): Promise<void> {
  await atomically([
    db.deleteFrom("unfinished_copy").compile(),
    db.insertInto("unfinished_copy").values({ slot: 1, id }).compile(),
  ]);
}

/** In the source, when it is opened to be served: from now on a copy that was begun before is not like it any more. */
export async function forgetCopy(engine: SqlEngine): Promise<void> {
  // Most starts have nothing to write.
  if ((await findUnfinishedCopy(engine)) === undefined) return;
  await engine.atomically([engine.db.deleteFrom("unfinished_copy").compile()]);
}
