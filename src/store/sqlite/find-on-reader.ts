import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Kysely } from "kysely";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { counterKeyIfAny, type KeyRow, selectKeys, toKey } from "../sql/find-keys.ts";
import type { Schema } from "../sql/schema.ts";
import { readOr503 } from "./read-or-503.ts";
import type { TurnReads } from "./turn-reads.ts";

/** The connection for reading, and what its reads share. */
export interface Reading {
  readonly reader: DatabaseSync;
  readonly reads: TurnReads;
  /** Called if the file could not be read properly. */
  readonly onDamage: (cause: unknown) => void;
}

/** Looks a key up with one prepared statement, synchronously. Rejects with `Unavailable` if it could not be read. */
export function findOnReader(
  db: Kysely<Schema>,
  { reader, reads, onDamage }: Reading,
): (digest: string) => MaybePromise<Key | undefined> {
  // Prepared at the first use: before that the tables may not exist.
  let statement: StatementSync | undefined;
  const prepare = () => {
    const prepared = reader.prepare(selectKeys(db, counterKeyIfAny).where("digest", "=", "").compile().sql);
    prepared.setReturnArrays(true);
    return prepared;
  };
  return (digest) => {
    try {
      const row = readOr503(onDamage, () => {
        statement ??= prepare();
        reads.beforeLookup();
        return statement.get(digest) as unknown as KeyRow | undefined;
      });
      return row && toKey(row);
    } catch (error) {
      return Promise.reject(error);
    }
  };
}
