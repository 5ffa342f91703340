import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { CompiledQuery, Kysely } from "kysely";
import { type KeyRow, type OwnerRow, toKey, toOwner } from "../../../gen/resources/store/found-rows.ts";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Owner } from "../../domain/owner.ts";
import type { KeyLookup, OwnerLookup } from "../key-lookup.ts";
import {
  counterKeyIfAny,
  ownerCounterIfAny,
  selectKeys,
  selectKeysOfEndingSecrets,
  selectOwners,
} from "../sql/find-rows.ts";
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
 * Looks keys and owners up with prepared statements, synchronously. Rejects with `Unavailable` if one could not be read.
 *
 * A key is looked up with a second statement if none has this secret as its newest. A secret moves from the one table to the
 * other in one transaction and never back, so that it is found in one of them.
 */
export function findOnReader(db: Kysely<Schema>, { reader, reads, onDamage }: Reading): KeyLookup & OwnerLookup {
  const newest = prepareOnce(selectKeys(db, counterKeyIfAny).where("keys.digest", "=", ""));
  const ending = prepareOnce(selectKeysOfEndingSecrets(db, counterKeyIfAny).where("ending_secrets.digest", "=", ""));
  const owners = prepareOnce(selectOwners(db, ownerCounterIfAny()).where("owners.id", "=", ""));

  /** At the first use: before that the tables may not exist. */
  function prepareOnce(query: { compile(): CompiledQuery }): () => StatementSync {
    const { sql } = query.compile();
    let prepared: StatementSync | undefined;
    return () => {
      if (prepared === undefined) {
        prepared = reader.prepare(sql);
        prepared.setReturnArrays(true);
      }
      return prepared;
    };
  }

  function look<Row, Found>(find: () => unknown, toFound: (row: Row) => Found): MaybePromise<Found | undefined> {
    try {
      const row = readOr503(onDamage, () => {
        reads.beforeLookup();
        return find() as Row | undefined;
      });
      return row && toFound(row);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  return {
    findByDigest: (digest) => look<KeyRow, Key>(() => newest().get(digest) ?? ending().get(digest), toKey),
    findOwner: (ownerId) => look<OwnerRow, Owner>(() => owners().get(ownerId), toOwner),
  };
}
