import { Unavailable } from "../../domain/unavailable.ts";
import type { ChangeFeed, FeedChange, FeedNews, FeedPosition } from "../change-feed.ts";
import type { NewEvent } from "../commands.ts";
import { type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most new changes that are reported one by one; if there are more, everything counts as changed. */
export const changesReadMax = 10_000;

/** The digests of all secrets of a row of `keys`, separated by commas. */
export const digests = sql`keys.digest || coalesce(
  (SELECT ',' || ending_secrets.digest FROM ending_secrets WHERE ending_secrets.key_id = keys.id), '')`;

/** What a row of the feed says of a changed row of each table. */
const additions = {
  key: { table: "keys", target: sql`id`, digests },
  owner: { table: "owners", target: sql`id`, digests: sql`NULL` },
  newOwner: { table: "owners", target: sql`id`, digests: sql`NULL` },
  rootKeys: { table: "root_keys", target: sql`NULL`, digests: sql`NULL` },
};

/**
 * To be part of the transaction that makes, changes or removes something, after its row is locked and before its secrets
 * change. A change that is not made adds nothing. For a key it answers the digests of all secrets that caches may know it by. A
 * statement of its own: one that waited for the row's lock may not see a secret that was replaced by the change it waited for.
 */
export function addChange(engine: SqlEngine, kind: keyof typeof additions, id: string, event: NewEvent): Sql {
  const { table, target, digests } = additions[kind];
  return sql`INSERT INTO changes (transaction_id, kind, target_id, digests)
    SELECT ${engine.thisTransaction}, ${sql.lit(kind)}, ${target}, ${digests} FROM ${sql.ref(table)}
    WHERE id = ${id} AND event_id = ${event.id} RETURNING digests`;
}

/** For root keys that are not stored; with a digest, if there is a root key with it, such as one that was just stored. */
export function addRootKeysChange({ thisTransaction }: SqlEngine, digest?: string): Sql {
  // `change_feed` has one row.
  const from = digest === undefined ? sql`change_feed` : sql`root_keys WHERE digest = ${digest}`;
  return sql`INSERT INTO changes (transaction_id, kind) SELECT ${thisTransaction}, 'rootKeys' FROM ${from}`;
}

/** The feed of an engine whose process is the only one: whatever it reads is current. */
export function createSqlChangeFeed(engine: SqlEngine): ChangeFeed {
  return {
    async read(since) {
      // One statement sees one state: the rows, the position after them, and what was tidied away.
      const rows = await engine.read<FeedRow>(sql`
        SELECT epoch, tidied_before, has_imported_keys, kind, target_id, digests,
          ${engine.oldestOpenTransaction} AS oldest_open
        FROM change_feed LEFT JOIN changes ON transaction_id >= ${since?.transaction ?? Number.MAX_SAFE_INTEGER}
        LIMIT ${sql.lit(changesReadMax + 1)}`);
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
    // Also a key without digests, added by hand: nothing says which entries of a cache it has.
    else return "everything";
  }
  return changes;
}
