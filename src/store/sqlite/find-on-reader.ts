import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type KeyRow, type OwnerRow, toKey, toOwner } from "../../../gen/resources/store/found-rows.ts";
import type { Key } from "../../domain/key.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Owner } from "../../domain/owner.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { KeyLookup, OwnerLookup } from "../key-lookup.ts";
import {
  counterKeyIfAny,
  ownerCounterIfAny,
  selectKeys,
  selectKeysOfEndingSecrets,
  selectOwners,
} from "../sql/find-rows.ts";
import { type Sql, sql } from "../sql/sql.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { isDamage } from "./result-codes.ts";
import type { TurnReads } from "./turn-reads.ts";
import { toStatement } from "./writer-protocol.ts";

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
export function findOnReader({ reader, reads, onDamage }: Reading): KeyLookup & OwnerLookup {
  const counterKey = counterKeyIfAny;
  const newest = prepareOnce(selectKeys(sql`keys.digest = ${""}`, { counterKey }));
  const ending = prepareOnce(selectKeysOfEndingSecrets(sql`ending_secrets.digest = ${""}`, { counterKey }));
  const owners = prepareOnce(selectOwners(sql`owners.id = ${""}`, ownerCounterIfAny()));

  /** At the first use: before that the tables may not exist. */
  function prepareOnce(query: Sql): () => StatementSync {
    const { sql: text } = toStatement(query);
    let prepared: StatementSync | undefined;
    return () => {
      if (prepared === undefined) {
        prepared = reader.prepare(text);
        prepared.setReturnArrays(true);
      }
      return prepared;
    };
  }

  function lookUp<Row, Found>(find: () => unknown, toFound: (row: Row) => Found): MaybePromise<Found | undefined> {
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
    findByDigest: (digest) => lookUp<KeyRow, Key>(() => newest().get(digest) ?? ending().get(digest), toKey),
    findOwner: (ownerId) => lookUp<OwnerRow, Owner>(() => owners().get(ownerId), toOwner),
  };
}

/** `SqlEngine.read`: synchronously, so that it sees everything that was committed before. */
export function readOnReader({ reader, reads, onDamage }: Reading): SqlEngine["read"] {
  // The queries are few and fixed, so this stays small.
  const prepared = new Map<string, StatementSync>();
  return async <Row>(query: Sql) =>
    readOr503(onDamage, () => {
      reads.endNow();
      const { sql: text, parameters } = toStatement(query);
      const statement = prepared.get(text) ?? reader.prepare(text);
      prepared.set(text, statement);
      return statement.all(...parameters) as unknown as readonly Row[];
    });
}

/** What was read, or `Unavailable`. `onDamage` is called if the file could not be read properly. */
function readOr503<Result>(onDamage: (cause: unknown) => void, read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    if (isDamage((cause as { errcode?: number }).errcode)) onDamage(cause);
    throw new Unavailable("the data could not be read", { cause, affectsOneKeyOnly: true });
  }
}
