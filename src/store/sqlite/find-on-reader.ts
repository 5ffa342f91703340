import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { CompiledQuery, Kysely } from "kysely";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { counterKeyIfAny, type KeyRow, selectKeys, selectKeysOfEndingSecrets, toKey } from "../sql/find-keys.ts";
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

/**
 * Looks a key up with a prepared statement, synchronously; with a second one if no key has this secret as its newest. A
 * secret moves from the one table to the other in one transaction and never back, so that it is found in one of them. Rejects with
 * `Unavailable` if it could not be read.
 */
export function findOnReader(
  db: Kysely<Schema>,
  { reader, reads, onDamage }: Reading,
): (digest: string) => MaybePromise<Key | undefined> {
  // Prepared at the first use: before that the tables may not exist.
  let newest: StatementSync | undefined;
  let ending: StatementSync | undefined;
  const prepare = ({ sql }: CompiledQuery) => {
    const prepared = reader.prepare(sql);
    prepared.setReturnArrays(true);
    return prepared;
  };
  const prepareNewest = () => prepare(selectKeys(db, counterKeyIfAny).where("keys.digest", "=", "").compile());
  const prepareEnding = () =>
    prepare(selectKeysOfEndingSecrets(db, counterKeyIfAny).where("ending_secrets.digest", "=", "").compile());
  return (digest) => {
    try {
      const row = readOr503(onDamage, () => {
        newest ??= prepareNewest();
        ending ??= prepareEnding();
        reads.beforeLookup();
        return (newest.get(digest) ?? ending.get(digest)) as unknown as KeyRow | undefined;
      });
      return row && toKey(row);
    } catch (error) {
      return Promise.reject(error);
    }
  };
}
