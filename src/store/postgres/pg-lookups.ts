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
import { type BatchEntry, KeyedBatcher } from "../../batching/keyed-batcher.ts";
import { Deadline } from "../../domain/deadlines.ts";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Owner } from "../../domain/owner.ts";
import type { KeyLookup, LookupOptions, OwnerLookup } from "../key-lookup.ts";
import { selectKeys, selectKeysOfEndingSecrets, selectOwners } from "../sql/find-rows.ts";
import { type Sql, sql } from "../sql/sql.ts";
import { type PreparedText, preparedText, toPgStatement } from "./pg-connection.ts";
import { keptForLookups, type PgPool } from "./pg-pool.ts";
import { lookupQueuedMs, lookupStatementMs, type RoundTrip } from "./round-trip.ts";

/** Most digests or owners that wait to be sent. */
const queueMax = 10_000;

export interface PgLookupsOptions extends Pick<Ambient, "clock" | "metrics"> {
  readonly pool: PgPool;
  readonly roundTrip: RoundTrip;
  readonly connectionsMax: number;
}

/**
 * Looks keys up, with one statement for all digests of a turn of the event loop, and for those that came while all statements
 * were under way. It looks up owners in the same way. Callers share a statement only as long as it has not been sent: so what they get is never
 * older than their question. A statement that fails fails its own callers only.
 */
export class PgLookups implements KeyLookup, OwnerLookup {
  readonly #pool: PgPool;
  readonly #roundTrip: RoundTrip;
  readonly #newDeadline: () => Deadline;
  readonly #lookups: LookupBatcher<Key>;
  /** For texts that anybody can make up: however many there are, others do not wait behind them. */
  readonly #foreignLookups: LookupBatcher<Key>;
  readonly #ownerLookups: LookupBatcher<Owner>;
  readonly #newest: PreparedText;
  readonly #ending: PreparedText;
  readonly #owners: PreparedText;

  constructor({ pool, roundTrip, connectionsMax, clock, metrics }: PgLookupsOptions) {
    this.#pool = pool;
    this.#roundTrip = roundTrip;
    // One text for any number of digests, so that it is planned once. They contain no comma.
    const asked = sql`any(string_to_array(${""}, ','))`;
    const ending = sql`ending_secrets.digest`;
    const newest = sql`keys.digest`;
    this.#newest = prepared(selectKeys(sql`${newest} = ${asked}`, { further: sql`, ${newest}` }));
    this.#ending = prepared(selectKeysOfEndingSecrets(sql`${ending} = ${asked}`, { further: sql`, ${ending}` }));
    this.#owners = prepared(selectOwners(sql`owners.id = any(${""}::text[])`));
    this.#newDeadline = () => new Deadline(clock, lookupQueuedMs(roundTrip.ms));
    const common = { queueMax, clock, metrics };
    // No more than connections that are open anyway: waiting for a new one takes longer than sharing the next statement.
    const batchesMax = Math.min(keptForLookups, connectionsMax);
    const commits = [(batch: readonly Lookup<Key>[]) => this.#send(batch)];
    this.#lookups = new KeyedBatcher({ ...common, name: "lookup", commits, batchesMax });
    this.#foreignLookups = new KeyedBatcher({ ...common, name: "foreign_lookup", commits, queueMax: queueMax / 4 });
    const commitsOfOwners = [(batch: readonly Lookup<Owner>[]) => this.#sendOwners(batch)];
    this.#ownerLookups = new KeyedBatcher({ ...common, name: "owner_lookup", commits: commitsOfOwners, batchesMax });
  }

  /** Rejects with `Unavailable`. */
  readonly findByDigest = (digest: string, options?: LookupOptions): Promise<Key | undefined> =>
    this.#find(options?.foreign ? this.#foreignLookups : this.#lookups, digest);

  /** Rejects with `Unavailable`. */
  readonly findOwner = (ownerId: string): Promise<Owner | undefined> => this.#find(this.#ownerLookups, ownerId);

  #find<Found>(lookups: LookupBatcher<Found>, key: string): Promise<Found | undefined> {
    const unsent = lookups.waiting(key);
    if (unsent !== undefined) return unsent.promise;
    const lookup = { ...Promise.withResolvers<Found | undefined>(), key, deadline: this.#newDeadline() };
    lookups.add(lookup);
    return lookup.promise;
  }

  async #send(lookups: readonly Lookup<Key>[]): Promise<readonly MaybePromise<Key | undefined>[]> {
    const found = new Map<string, TextRow>();
    const digests = lookups.map(({ key }) => key);
    const waitMs = queueLeftMs(lookups);
    const find = async (text: PreparedText, asked: readonly string[]) => {
      for (const row of await this.#query(text, asked.join(","), waitMs)) found.set(row[digestColumn] as string, row);
    };
    await find(this.#newest, digests);
    // A statement of its own: for those that find their key it would take a tenth longer. In this order, because a secret
    // moves from `keys` to `ending_secrets` and never back.
    const missing = found.size === digests.length ? [] : digests.filter((digest) => !found.has(digest));
    if (missing.length > 0) await find(this.#ending, missing);
    return digests.map((digest) => readRow<KeyRow, Key>(found.get(digest), keyNumbers, toKey));
  }

  async #sendOwners(lookups: readonly Lookup<Owner>[]): Promise<readonly MaybePromise<Owner | undefined>[]> {
    const ownerIds = lookups.map(({ key }) => key);
    const rows = await this.#query(this.#owners, ownerIds, queueLeftMs(lookups));
    const found = new Map(rows.map((row) => [row[0] as string, row]));
    return ownerIds.map((ownerId) => readRow<OwnerRow, Owner>(found.get(ownerId), ownerNumbers, toOwner));
  }

  async #query(text: PreparedText, asked: string | readonly string[], waitMs: number): Promise<TextRow[]> {
    const { ms } = this.#roundTrip;
    const statement = { ...text, values: [asked], rowMode: "text" } as const;
    const { rows } = await this.#pool.query(statement, { waitMs, queryMs: lookupStatementMs(ms) }, "lookups");
    return rows as unknown as TextRow[];
  }
}

function prepared(query: Sql): PreparedText {
  return preparedText(toPgStatement(query).text);
}

/** A look-up by digest, or of an owner. All that ask for it before it is sent share its promise. */
interface Lookup<Found> extends BatchEntry<Found | undefined> {
  readonly key: string;
  readonly deadline: Deadline;
  readonly promise: Promise<Found | undefined>;
}

type LookupBatcher<Found> = KeyedBatcher<Lookup<Found>, Found | undefined>;

/** How long a batch may wait for a connection: as much longer as the first of its look-ups could have been queued. */
function queueLeftMs(batch: readonly { readonly deadline: Deadline }[]): number {
  return Math.max(1, batch[0]?.deadline.leftMs ?? 0);
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
