import { type Kysely, sql } from "kysely";
import type { Ambient } from "../../ambient/ambient.ts";
import { GroupCommit } from "../../batching/group-commit.ts";
import type { Key } from "../../domain/key.ts";
import { type KeyRow, selectKeys, toKey } from "../sql/find-keys.ts";
import type { Schema } from "../sql/schema.ts";
import { preparedText } from "./pg-connection.ts";
import { keptForReads, type PgPool } from "./pg-pool.ts";
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
  readonly #batches: GroupCommit<string, Found>;
  /** Look-ups that have not been sent, by digest. */
  readonly #unsent = new Map<string, Promise<Key | undefined>>();
  readonly #statement: { readonly name: string; readonly text: string };

  constructor({ db, pool, roundTrip, connectionsMax, clock, metrics }: PgLookupsOptions) {
    this.#pool = pool;
    this.#roundTrip = roundTrip;
    // One text for any number of digests, so that it is planned once. They contain no comma.
    const asked = sql<string>`any(string_to_array(${""}, ','))`;
    const { sql: text } = selectKeys(db).select("key_secrets.digest").where("key_secrets.digest", "=", asked).compile();
    this.#statement = preparedText(text);
    this.#batches = new GroupCommit({
      name: "lookup",
      batchMax,
      queueMax,
      // No more than connections that are open anyway: waiting for a new one takes longer than sharing the next statement.
      batchesMax: Math.min(keptForReads, connectionsMax),
      queuedMs: () => lookupQueuedMs(roundTrip.ms),
      commit: (digests, queuedForMs) => this.#send(digests, queuedForMs),
      clock,
      metrics,
    });
  }

  /** Rejects with `Unavailable`. */
  readonly findByDigest = (digest: string): Promise<Key | undefined> => {
    let found = this.#unsent.get(digest);
    if (found === undefined) {
      found = this.#batches.submit(digest).then(keyOf);
      this.#unsent.set(digest, found);
      // It may be rejected before it is sent.
      found.catch(() => this.#unsent.get(digest) === found && this.#unsent.delete(digest));
    }
    return found;
  };

  async #send(digests: readonly string[], queuedForMs: number): Promise<readonly Found[]> {
    for (const digest of digests) this.#unsent.delete(digest);
    const { ms } = this.#roundTrip;
    const statement = { ...this.#statement, values: [digests.join(",")], rowMode: "array" } as const;
    const waitMs = Math.max(1, lookupQueuedMs(ms) - queuedForMs);
    const { rows } = await this.#pool.query(statement, { waitMs, queryMs: lookupStatementMs(ms) });
    const byDigest = new Map<string, FoundRow>();
    for (const row of rows as unknown as FoundRow[]) byDigest.set(row[11], row);
    return digests.map((digest) => byDigest.get(digest));
  }
}

type FoundRow = readonly [...KeyRow, digest: string];
type Found = FoundRow | undefined;

/** A row that cannot be read fails its own look-up only. */
function keyOf(row: Found): Key | undefined {
  return row && toKey(row as unknown as KeyRow);
}
