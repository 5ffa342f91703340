import { keyColumns, ownerColumns } from "../../../gen/resources/store/found-rows.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import { columnList, type Sql, sql } from "./sql.ts";

/*
 * What verifications look up of keys and owners. Rows are read as arrays, in the order of these columns: objects would take
 * longer to make than a row to find.
 */

/** 1 or null. A SELECT for one row: nothing is searched for a key that names no owner, and no engine reads the whole table. */
const hasOwnerRecord = sql`CASE WHEN keys.owner_id IS NOT NULL
  THEN (SELECT 1 FROM owners WHERE owners.id = keys.owner_id) END AS has_owner_record`;

const keyId = sql`keys.id`;
const foundKey = sql`SELECT ${columnList(keyColumns)}, ${hasOwnerRecord}`;

/** What engines differ in: the id under which a counter is looked for, of which null finds none, and columns behind the row. */
interface Differences {
  readonly counterKey?: Sql;
  readonly further?: Sql;
}

/** Everything of keys that a verification needs, as a `KeyRow`. `which`: the condition on `keys.digest`. */
export function selectKeys(which: Sql, { counterKey = keyId, further = sql`` }: Differences): Sql {
  return sql`${foundKey}, CAST(NULL AS bigint) AS secret_expires_at_ms${further}
    FROM keys LEFT JOIN counters ON counters.subject = ${counterKey} WHERE ${which}`;
}

/** The same for secrets that were replaced. The condition is on `ending_secrets.digest`. */
export function selectKeysOfEndingSecrets(which: Sql, { counterKey = keyId, further = sql`` }: Differences): Sql {
  return sql`${foundKey}, ending_secrets.expires_at_ms AS secret_expires_at_ms${further}
    FROM ending_secrets JOIN keys ON keys.id = ending_secrets.key_id
    LEFT JOIN counters ON counters.subject = ${counterKey} WHERE ${which}`;
}

/** Null for a key without a counter. It saves the embedded engine a search; look-ups on Postgres take twice as long with it. */
export const counterKeyIfAny = sql`CASE WHEN has_counter = 1 THEN keys.id END`;

/** In SQL: the subject of an owner's counter, by its row. */
export function ownerCounter(table = "owners"): Sql {
  return sql`${sql.lit(counterOfOwner(""))} || ${sql.ref(`${table}.id`)}`;
}

/** Null for an owner without a counter: see `counterKeyIfAny`. */
export function ownerCounterIfAny(table = "owners"): Sql {
  return sql`CASE WHEN has_counter = 1 THEN ${ownerCounter(table)} END`;
}

/** Everything of owners that a verification needs, as an `OwnerRow`. `which`: the condition on `owners.id`. */
export function selectOwners(which: Sql, counter = ownerCounter()): Sql {
  return sql`SELECT ${columnList(ownerColumns)} FROM owners
    LEFT JOIN counters ON counters.subject = ${counter} WHERE ${which}`;
}
