import { type Kysely, sql } from "kysely";
import type { Ambient } from "../../ambient/ambient.ts";
import { GroupCommit } from "../../batching/group-commit.ts";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { LookupOptions } from "../key-lookup.ts";
import { type Pending, PendingTable } from "../pending-table.ts";
import { type KeyRow, selectKeys, selectKeysOfEndingSecrets, toKey } from "../sql/find-keys.ts";
import type { Schema } from "../sql/schema.ts";
import { preparedText } from "./pg-connection.ts";
import { keptForLookups, type PgPool } from "./pg-pool.ts";
import { lookupQueuedMs, lookupStatementMs, type RoundTrip } from "./round-trip.ts";

/** Most digests of one statement, and most that wait to be sent. */
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
 * were under way. Callers share a statement only as long as it has not been sent: so what they get is never older than
 * their question. A statement that fails fails its own callers only.
 */
export class PgLookups {
  readonly #pool: PgPool;
  readonly #roundTrip: RoundTrip;
  readonly #batches: GroupCommit<Lookup, MaybePromise<Key | undefined>>;
  /** For texts that anybody can make up: however many there are, others do not wait behind them. */
  readonly #foreignBatches: GroupCommit<Lookup, MaybePromise<Key | undefined>>;
  readonly #unsent = new PendingTable<Lookup>();
  readonly #newest: PreparedText;
  readonly #ending: PreparedText;

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
    const common = {
      batchMax,
      queuedMs: () => lookupQueuedMs(roundTrip.ms),
      onDequeued: (lookup: Lookup) => this.#unsent.remove(lookup),
      commit: (lookups: readonly Lookup[], queuedForMs: number) => this.#send(lookups, queuedForMs),
      clock,
      metrics,
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

  async #send(lookups: readonly Lookup[], queuedForMs: number): Promise<readonly MaybePromise<Key | undefined>[]> {
    const found = new Map<string, TextRow>();
    const digests = lookups.map(({ digest }) => digest);
    await this.#find(this.#newest, digests, found, queuedForMs);
    // A statement of its own: for those that find their key it would take a tenth longer. In this order, because a secret
    // moves from `keys` to `ending_secrets` and never back.
    const missing = found.size === digests.length ? [] : digests.filter((digest) => !found.has(digest));
    if (missing.length > 0) await this.#find(this.#ending, missing, found, queuedForMs);
    return digests.map((digest) => keyOf(found.get(digest)));
  }

  /** Adds the rows of these digests to those that were found. */
  async #find(
    text: PreparedText,
    digests: readonly string[],
    found: Map<string, TextRow>,
    queuedForMs: number,
  ): Promise<void> {
    const { ms } = this.#roundTrip;
    const statement = { ...text, values: [digests.join(",")], rowMode: "text" } as const;
    const waitMs = Math.max(1, lookupQueuedMs(ms) - queuedForMs);
    const { rows } = await this.#pool.query(statement, { waitMs, queryMs: lookupStatementMs(ms) }, "lookups");
    for (const row of rows as unknown as TextRow[]) found.set(row[digestColumn] as string, row);
  }
}

type PreparedText = ReturnType<typeof preparedText>;

/** A look-up that waits to be sent. */
interface Lookup extends Pending<Lookup> {
  found: Promise<Key | undefined> | undefined;
}

/** The columns of a `KeyRow` as text, then the digest. */
type TextRow = (string | number | null)[];
const digestColumn = 16;
const numberColumns = [5, 6, 7, 8, 9, 10, 11, 15];

/** A row that cannot be read fails its own look-up only. */
function keyOf(row: TextRow | undefined): MaybePromise<Key | undefined> {
  if (row === undefined) return undefined;
  for (const column of numberColumns) if (row[column] !== null) row[column] = Number(row[column]);
  try {
    return toKey(row as unknown as KeyRow);
  } catch (error) {
    return Promise.reject(error);
  }
}
