import {
  type CompiledQuery,
  type Dialect,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import type { QueryResult as PgQueryResult } from "pg";
import { createStatelessDriver } from "../sql/stateless-driver.ts";
import type { PgPool, Query, Timeouts } from "./pg-pool.ts";

/** A look-up is answered within half a second, or its caller gets 503. */
const readTimeouts: Timeouts = { waitMs: 200, queryMs: 240 };
/** Creating and deleting keys may take longer: they are not part of serving an API request. */
export const writeTimeouts: Timeouts = { waitMs: 2000, queryMs: 5000 };

export function createPgDialect(pool: PgPool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () =>
      createStatelessDriver(async (query) => {
        if (SelectQueryNode.is(query.query)) return toQueryResult(await pool.query(toQuery(query), readTimeouts));
        // A single write is a transaction too, and has to be as durable.
        const [result] = await pool.transaction([toQuery(query)], writeTimeouts);
        return toQueryResult(result as PgQueryResult);
      }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

export function toQuery({ sql, parameters }: CompiledQuery): Query {
  return { text: sql, values: parameters };
}

export function toQueryResult({ rows, rowCount }: PgQueryResult): QueryResult<unknown> {
  return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
}
