import type { StoredSecret } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { concernsApi, type StoredOwner } from "../../domain/owner.ts";
import { type Resource, resources } from "../../domain/resources.ts";
import type { StoredResources } from "../queries.ts";
import { type CounterColumns, counterColumns, readCounter, withDueRefills } from "./counter-row.ts";
import { columnNames, propertiesOf } from "./field-columns.ts";
import { ownerCounter } from "./find-rows.ts";
import type { Rows } from "./plan.ts";
import { columnList, type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/* Resources as they are read, with everything that can be seen of them. */

export const tables = { key: "keys", owner: "owners", api: "apis", rootKey: "root_keys" } as const;

/** What is read of each, beside its id, version, times and fields: in SQL columns, and where they are. */
interface Reading {
  readonly columns: readonly string[];
  readonly joins: Sql;
}

const columnsOfCounter = counterColumns.map((column) => `counters.${column}`);

const readings: { readonly [Of in Resource]: Reading } = {
  key: {
    columns: [
      "keys.api_id",
      "keys.start",
      "keys.secret_created_at_ms",
      ...columnsOfCounter,
      "ending_secrets.start as ending_start",
      "ending_secrets.created_at_ms as ending_created_at_ms",
      "ending_secrets.expires_at_ms as ending_expires_at_ms",
    ],
    joins: sql`LEFT JOIN counters ON counters.subject = keys.id LEFT JOIN ending_secrets ON ending_secrets.key_id = keys.id`,
  },
  owner: { columns: columnsOfCounter, joins: sql`LEFT JOIN counters ON counters.subject = ${ownerCounter()}` },
  api: { columns: [], joins: sql`` },
  rootKey: { columns: ["root_keys.start"], joins: sql`` },
};

/** The columns of a resource's own table that are read of it. */
export function ownColumns(resource: Resource): string[] {
  return ["id", "created_at_ms", "updated_at_ms", "version", ...columnNames(resources[resource])];
}

/** All columns that are read of a resource. `table`: where its own columns are. */
export function storedColumns(resource: Resource, table: string = tables[resource]): string[] {
  return [...ownColumns(resource).map((column) => `${table}.${column}`), ...readings[resource].columns];
}

/** Up to the condition, once for each resource: a text of so many columns takes as long to write as a row to read. */
const selections = Object.fromEntries(
  (Object.keys(tables) as Resource[]).map((resource) => {
    const columns = columnList(storedColumns(resource));
    return [resource, sql`SELECT ${columns} FROM ${sql.ref(tables[resource])} ${readings[resource].joins}`];
  }),
) as { readonly [Of in Resource]: Sql };

function selectStored(resource: Resource, condition: Sql): Sql {
  return sql`${selections[resource]} WHERE ${condition}`;
}

/** The statement that finds a resource by its id: its row is read by `storedOf`. */
export function selectResource(resource: Resource, id: string): Sql {
  return selectStored(resource, sql`${sql.ref(`${tables[resource]}.id`)} = ${id}`);
}

export async function readResource<Of extends Resource>(
  engine: SqlEngine,
  { kind, id }: { readonly kind: Of; readonly id: string },
): Promise<StoredResources[Of] | undefined> {
  return storedOf(engine, kind, { rows: await engine.read(selectResource(kind, id)) });
}

/** The key that has this digest of a secret, unless the secret has ended by then. */
export async function readKeyOfSecret(engine: SqlEngine, { digest, nowMs }: { digest: string; nowMs: number }) {
  const find = async (isFound: Sql) =>
    storedOf(engine, "key", { rows: await engine.read(selectStored("key", isFound)) });
  // In this order: secrets move from `keys` to `ending_secrets`, and never back.
  const isEnding = sql`ending_secrets.digest = ${digest} AND ending_secrets.expires_at_ms > ${nowMs}`;
  return (await find(sql`keys.digest = ${digest}`)) ?? (await find(isEnding));
}

/** The owner of this key, if its record concerns keys of the same API. */
export async function readOwnerOfKey(engine: SqlEngine, { keyId }: { keyId: string }) {
  const select = sql`SELECT owner_id, api_id FROM keys WHERE id = ${keyId}`;
  const [key] = await engine.read<Pick<KeyRow, "api_id"> & { readonly owner_id: string | null }>(select);
  if (key === undefined || key.owner_id === null) return undefined;
  const owner = await readResource(engine, { kind: "owner", id: key.owner_id });
  return owner && concernsApi(owner, key.api_id) ? owner : undefined;
}

/** The one resource that was found, if any, with every refill that is due. */
export function storedOf<Of extends Resource>(
  engine: SqlEngine,
  resource: Of,
  found: Rows | undefined,
): MaybePromise<StoredResources[Of] | undefined> {
  return andThen(storedFrom(engine, resource, found?.rows.slice(0, 1) ?? []), ([only]) => only);
}

/** The same of several rows. Throws `Unavailable`, for one of them only, if it cannot be read. */
export function storedFrom<Of extends Resource>(
  engine: SqlEngine,
  resource: Of,
  rows: readonly unknown[],
): MaybePromise<readonly StoredResources[Of][]> {
  const stored = rows.map((row) => ({ ...commonOf(resource, row as CommonRow), ...others[resource](row as never) }));
  return withDueRefills(engine, stored as unknown as readonly Pick<StoredOwner, "counter">[]) as MaybePromise<
    readonly StoredResources[Of][]
  >;
}

interface CommonRow {
  readonly id: string;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly version: number;
}

function commonOf(resource: Resource, row: CommonRow) {
  const { id, created_at_ms: createdAtMs, updated_at_ms: updatedAtMs, version } = row;
  return { id, ...propertiesOf(resources[resource], row), createdAtMs, updatedAtMs, version };
}

const others = {
  key: (row: KeyRow) => ({
    apiId: row.api_id,
    start: row.start,
    counter: readCounter(row),
    secrets: secretsOf(row),
  }),
  owner: (row: CounterColumns) => ({ counter: readCounter(row) }),
  api: () => ({}),
  rootKey: ({ start }: { readonly start: string }) => ({ start }),
};

interface KeyRow extends CounterColumns {
  readonly api_id: string;
  readonly start: string;
  readonly secret_created_at_ms: number;
  /** These three are set together, or none of them. */
  readonly ending_start: string | null;
  readonly ending_created_at_ms: number | null;
  readonly ending_expires_at_ms: number | null;
}

function secretsOf(row: KeyRow): StoredSecret[] {
  const { start, secret_created_at_ms: createdAtMs } = row;
  const newest = { start, createdAtMs, expiresAtMs: undefined };
  const { ending_start, ending_created_at_ms, ending_expires_at_ms } = row;
  if (ending_start === null || ending_created_at_ms === null || ending_expires_at_ms === null) return [newest];
  return [newest, { start: ending_start, createdAtMs: ending_created_at_ms, expiresAtMs: ending_expires_at_ms }];
}
