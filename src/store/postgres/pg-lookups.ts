import { type Kysely, sql } from "kysely";
import {
  type KeyRow,
  keyColumns,
  keyNumbers,
  type OwnerRow,
  ownerNumbers,
  toKey,
  toOwner,
} from "../../../gen/resources/store/found-rows.ts";
import type { Ambient } from "../../ambient/ambient.ts";
import { GroupCommit } from "../../batching/group-commit.ts";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Owner } from "../../domain/owner.ts";
import type { KeyLookup, LookupOptions, OwnerLookup } from "../key-lookup.ts";
import { type Pending, PendingTable } from "../pending-table.ts";
import { selectKeys, selectKeysOfEndingSecrets, selectOwners } from "../sql/find-rows.ts";
import type { Schema } from "../sql/schema.ts";
import { preparedText } from "./pg-connection.ts";
import { keptForLookups, type PgPool } from "./pg-pool.ts";
import { lookupQueuedMs, lookupStatementMs, type RoundTrip } from "./round-trip.ts";

/** Most digests or owners of one statement, and most that wait to be sent. */
const batchMax = 500;
const queueMax = 10_000;

export interface PgLookupsOptions extends Pick<Ambient, "clock" | "metrics"> {
  readonly db: Kysely<Schema>;
  readonly pool: PgPool;
  readonly roundTrip: RoundTrip;
  readonly connectionsMax: number;
}

/**
 * Looks keys up, with one statement for all digests of a turn of the event loop, and for those that came while all statements
 * were under way; owners likewise. Callers share a statement only as long as it has not been sent: so what they get is never
 * older than their question. A statement that fails fails its own callers only.
 */
export class PgLookups implements KeyLookup, OwnerLookup {
  readonly #pool: PgPool;
  readonly #roundTrip: RoundTrip;
  readonly #batches: GroupCommit<Lookup, MaybePromise<Key | undefined>>;
  /** For texts that anybody can make up: however many there are, others do not wait behind them. */
  readonly #foreignBatches: GroupCommit<Lookup, MaybePromise<Key | undefined>>;
  readonly #ownerBatches: GroupCommit<string, MaybePromise<Owner | undefined>>;
  readonly #unsent = new PendingTable<Lookup>();
  readonly #newest: PreparedText;
  readonly #ending: PreparedText;
  readonly #owners: PreparedText;

  constructor({ db, pool, roundTrip, connectionsMax, clock, metrics }: PgLookupsOptions) {
    this.#pool = pool;
    this.#roundTrip = roundTrip;
    // One text for any number of digests, so that it is planned once. They contain no comma.
    const asked = sql<string>`any(string_to_array(${""}, ','))`;
    const newest = selectKeys(db).select("keys.digest").where("keys.digest", "=", asked);
    const ending = selectKeysOfEndingSecrets(db)
      .select("ending_secrets.digest")
      .where("ending_secrets.digest", "=", asked);
    this.#newest = preparedText(newest.compile().sql);
    this.#ending = preparedText(ending.compile().sql);
    const owners = selectOwners(db).where("owners.id", "=", sql<string>`any(${""}::text[])`);
    this.#owners = preparedText(owners.compile().sql);
    const batched = { batchMax, queuedMs: () => lookupQueuedMs(roundTrip.ms), clock, metrics };
    const common = {
      ...batched,
      onDequeued: (lookup: Lookup) => this.#unsent.remove(lookup),
      commit: (lookups: readonly Lookup[], queueLeftMs: number) => this.#send(lookups, queueLeftMs),
    };
    // No more than connections that are open anyway: waiting for a new one takes longer than sharing the next statement.
    const batchesMax = Math.min(keptForLookups, connectionsMax);
    this.#batches = new GroupCommit({ ...common, name: "lookup", queueMax, batchesMax });
    this.#foreignBatches = new GroupCommit({
      ...common,
      name: "foreign_lookup",
      queueMax: queueMax / 4,
      batchesMax: 1,
    });
    this.#ownerBatches = new GroupCommit({
      ...batched,
      name: "owner_lookup",
      queueMax,
      batchesMax,
      commit: (ownerIds, queueLeftMs) => this.#sendOwners(ownerIds, queueLeftMs),
    });
  }

  /** Rejects with `Unavailable`. */
  readonly findByDigest = (digest: string, options?: LookupOptions): Promise<Key | undefined> => {
    const unsent = this.#unsent.latest(digest);
    if (unsent?.found !== undefined) return unsent.found;
    const lookup: Lookup = { digest, next: undefined, found: undefined };
    this.#unsent.add(lookup);
    lookup.found = (options?.foreign ? this.#foreignBatches : this.#batches).submit(lookup);
    return lookup.found;
  };

  /** Rejects with `Unavailable`. */
  readonly findOwner = (ownerId: string): Promise<Owner | undefined> => this.#ownerBatches.submit(ownerId);

  async #send(lookups: readonly Lookup[], queueLeftMs: number): Promise<readonly MaybePromise<Key | undefined>[]> {
    const found = new Map<string, TextRow>();
    const digests = lookups.map(({ digest }) => digest);
    const find = async (text: PreparedText, asked: readonly string[]) => {
      for (const row of await this.#query(text, asked.join(","), queueLeftMs))
        found.set(row[digestColumn] as string, row);
    };
    await find(this.#newest, digests);
    // A statement of its own: for those that find their key it would take a tenth longer. In this order, because a secret
    // moves from `keys` to `ending_secrets` and never back.
    const missing = found.size === digests.length ? [] : digests.filter((digest) => !found.has(digest));
    if (missing.length > 0) await find(this.#ending, missing);
    return digests.map((digest) => readRow<KeyRow, Key>(found.get(digest), keyNumbers, toKey));
  }

  /** The same owner may be asked for by several callers. */
  async #sendOwners(ownerIds: readonly string[], queueLeftMs: number): Promise<MaybePromise<Owner | undefined>[]> {
    const rows = await this.#query(this.#owners, [...new Set(ownerIds)], queueLeftMs);
    const found = new Map(rows.map((row) => [row[0] as string, readRow<OwnerRow, Owner>(row, ownerNumbers, toOwner)]));
    return ownerIds.map((ownerId) => found.get(ownerId));
  }

  async #query(text: PreparedText, asked: string | readonly string[], queueLeftMs: number): Promise<TextRow[]> {
    const { ms } = this.#roundTrip;
    const statement = { ...text, values: [asked], rowMode: "text" } as const;
    const waitMs = Math.max(1, queueLeftMs);
    const { rows } = await this.#pool.query(statement, { waitMs, queryMs: lookupStatementMs(ms) }, "lookups");
    return rows as unknown as TextRow[];
  }
}

type PreparedText = ReturnType<typeof preparedText>;

/** A look-up that waits to be sent. */
interface Lookup extends Pending<Lookup> {
  found: Promise<Key | undefined> | undefined;
}

/** The columns of a `KeyRow`, then the digest, or those of an `OwnerRow`: as text. */
type TextRow = (string | number | null)[];
/** Behind the key's two further columns. */
const digestColumn = keyColumns.length + 2;

/** A row that cannot be read fails its own look-up only. */
function readRow<Row, Found>(
  row: TextRow | undefined,
  numberColumns: readonly number[],
  read: (row: Row) => Found,
): MaybePromise<Found | undefined> {
  if (row === undefined) return undefined;
  for (const column of numberColumns) if (row[column] !== null) row[column] = Number(row[column]);
  try {
    return read(row as unknown as Row);
  } catch (error) {
    return Promise.reject(error);
  }
}
