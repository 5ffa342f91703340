import type { KeyDefaults, StoredApi } from "../../domain/api.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { ApiPage, ApisQuery } from "../queries.ts";
import type { Rows } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";

const columns = ["id", "name", "defaults", "created_at_ms", "updated_at_ms", "version"] as const;

export async function readApi(engine: SqlEngine, apiId: string): Promise<StoredApi | undefined> {
  const row = await selectApi(engine, apiId).executeTakeFirst();
  return row && toStoredApi(row);
}

export function selectApi({ db }: SqlEngine, apiId: string) {
  return db.selectFrom("apis").where("id", "=", apiId).select(columns);
}

/** The one API that `selectApi` has found. */
export function storedApiOf(found: Rows | undefined): StoredApi {
  return toStoredApi(found?.rows[0] as ApiRow);
}

/** One row more than the page has is read: it tells whether another page follows. */
export async function listApis({ db, scan }: SqlEngine, { limit, after, within }: ApisQuery): Promise<ApiPage> {
  // An empty list is no SQL.
  if (within?.length === 0) return { apis: [] };
  const query = db
    .selectFrom("apis")
    .select(columns)
    .$if(within !== undefined, (query) => query.where("id", "in", within as readonly string[]))
    .$if(after !== undefined, (query) =>
      query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("created_at_ms", "id"), "<", tuple(after?.createdAtMs as number, after?.apiId as string)),
      ),
    )
    .orderBy("created_at_ms", "desc")
    .orderBy("id", "desc")
    .limit(limit + 1);
  const rows = (await scan(query.compile())) as readonly ApiRow[];
  const apis = rows.slice(0, limit).map(toStoredApi);
  const last = apis.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  return { apis, ...(isMore && { next: { createdAtMs: last.createdAtMs, apiId: last.id } }) };
}

interface ApiRow {
  readonly id: string;
  readonly name: string | null;
  readonly defaults: string;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly version: number;
}

/** Throws `Unavailable`, for this API only, if the row cannot be read. */
function toStoredApi(row: ApiRow): StoredApi {
  return {
    id: row.id,
    name: row.name ?? undefined,
    defaults: readDefaults(row.defaults),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    version: row.version,
  };
}

function readDefaults(text: string): KeyDefaults {
  try {
    return JSON.parse(text) as KeyDefaults;
  } catch (cause) {
    throw new Unavailable("the stored defaults of an API cannot be read", { cause, affectsOneKeyOnly: true });
  }
}
