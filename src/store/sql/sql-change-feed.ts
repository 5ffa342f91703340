import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { Unavailable } from "../../domain/unavailable.ts";
import type { ChangeFeed, FeedChange, FeedNews, FeedPosition } from "../change-feed.ts";
import type { NewEvent } from "../commands.ts";
import { compileOnce } from "./compile-once.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most new changes that are told one by one; if there are more, everything counts as changed. */
export const changesReadMax = 10_000;
/** Rows that are removed in one transaction. */
const tidyStep = 500;

/** Of all secrets of a row of `keys`, separated by commas. */
export const digests = sql<string>`keys.digest || coalesce(
  (SELECT ',' || ending_secrets.digest FROM ending_secrets WHERE ending_secrets.key_id = keys.id), '')`;

/**
 * To be part of the transaction that makes, changes or removes something, after its row is locked and before its secrets
 * change. A change that is not made adds nothing. Of a key it answers the digests of all secrets that caches may know it by. A
 * statement of its own: one that waited for the row's lock may not see a secret that was replaced by the change it waited for.
 */
const additions = {
  key: additionOf("keys", "key", sql`id`, digests),
  owner: additionOf("owners", "owner", sql`id`),
  newOwner: additionOf("owners", "newOwner", sql`id`),
  rootKeys: additionOf("root_keys", "rootKeys", sql`NULL`),
};

export function addChange(engine: SqlEngine, kind: keyof typeof additions, id: string, event: NewEvent): CompiledQuery {
  return additions[kind](engine, { id, eventId: event.id });
}

function additionOf(table: string, kind: string, target: RawBuilder<unknown>, told = sql<string>`NULL`) {
  return compileOnce(["id", "eventId"], ({ db, thisTransaction }, { id, eventId }) =>
    sql`INSERT INTO changes (transaction_id, kind, target_id, digests)
      SELECT ${thisTransaction}, ${sql.lit(kind)}, ${target}, ${told} FROM ${sql.table(table)}
      WHERE id = ${id} AND event_id = ${eventId} RETURNING digests`.compile(db),
  );
}

/** Of root keys that are not stored; with a digest, if there is a root key with it, such as one that was just stored. */
export function addRootKeysChange({ db, thisTransaction }: SqlEngine, digest?: string): CompiledQuery {
  // `change_feed` has one row.
  const from = digest === undefined ? sql`change_feed` : sql`root_keys WHERE digest = ${digest}`;
  return sql`INSERT INTO changes (transaction_id, kind) SELECT ${thisTransaction}, 'rootKeys' FROM ${from}`.compile(db);
}

/** The feed of an engine whose process is the only one: whatever it reads is current. */
export function createSqlChangeFeed({ db, oldestOpenTransaction }: SqlEngine): ChangeFeed {
  return {
    async read(since) {
      // One statement sees one state: the rows, the position after them, and what was tidied away.
      const rows = await db
        .selectFrom("change_feed")
        .leftJoin("changes", (join) => join.on("transaction_id", ">=", since?.transaction ?? Number.MAX_SAFE_INTEGER))
        .select(["epoch", "tidied_before", "has_imported_keys", "transaction_id", "kind", "target_id", "digests"])
        .select(oldestOpenTransaction.as("oldest_open"))
        .limit(changesReadMax + 1)
        .execute();
      return newsOf(rows, since);
    },
  };
}

/** Every row repeats what concerns the feed as a whole. If nothing is new, there is one row, without a change. */
export interface FeedRow {
  readonly epoch: string;
  readonly tidied_before: number;
  readonly has_imported_keys: number;
  readonly oldest_open: number;
  readonly kind: string | null;
  readonly target_id: string | null;
  readonly digests: string | null;
}

/** `rows` are those since the position, at most one more than `changesReadMax`. */
export function newsOf(rows: readonly FeedRow[], since: FeedPosition | undefined): FeedNews {
  const [first] = rows;
  if (first === undefined) throw new Unavailable("the change feed has no epoch");
  const { epoch, oldest_open: transaction, tidied_before: tidiedBefore } = first;
  const position = { epoch, transaction };
  const isKnown =
    since !== undefined &&
    since.epoch === epoch &&
    since.transaction <= transaction &&
    since.transaction >= tidiedBefore &&
    rows.length <= changesReadMax;
  const hasImportedKeys = first.has_imported_keys === 1;
  return { position, changed: isKnown ? toChanges(rows) : "everything", hasImportedKeys, ageMs: 0 };
}

function toChanges(rows: readonly FeedRow[]): FeedChange[] | "everything" {
  const changes: FeedChange[] = [];
  for (const { kind, target_id: id, digests } of rows) {
    if (kind === null) continue;
    if (kind === "rootKeys") changes.push({ kind });
    else if (kind === "key" && id !== null && digests !== null)
      changes.push({ kind, keyId: id, digests: digests === "" ? [] : digests.split(",") });
    else if ((kind === "owner" || kind === "newOwner") && id !== null)
      changes.push({ kind: "owner", ownerId: id, isNew: kind === "newOwner" });
    // Also a key without digests, added by hand: nothing tells which entries of a cache it has.
    else return "everything";
  }
  return changes;
}

/**
 * Removes all but the newest changes, in small transactions. `tidied_before` moves in the same transaction, and never
 * beyond a transaction that is open: positions cannot pass that one, and would count as too old each time.
 */
export async function tidyChanges(engine: SqlEngine, keptMax = changesReadMax): Promise<void> {
  const { db, oldestOpenTransaction } = engine;
  const ids = db.selectFrom("changes").select("transaction_id").limit(1);
  for (;;) {
    const { oldest_kept, step_end, oldest_open, tidied_before } = await db
      .selectFrom("change_feed")
      .select([
        "tidied_before",
        ids
          .orderBy("transaction_id", "desc")
          .offset(keptMax - 1)
          .as("oldest_kept"),
        ids
          .orderBy("transaction_id")
          .offset(tidyStep - 1)
          .as("step_end"),
        oldestOpenTransaction.as("oldest_open"),
      ])
      .executeTakeFirstOrThrow();
    const bound = Math.min(oldest_kept ?? 0, oldest_open, (step_end ?? oldest_open) + 1);
    if (bound <= tidied_before) return;
    await engine.atomically([
      db.updateTable("change_feed").set({ tidied_before: bound }).where("tidied_before", "<", bound).compile(),
      db.deleteFrom("changes").where("transaction_id", "<", bound).compile(),
    ]);
  }
}
