import {
  type CompiledQuery,
  type Dialect,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import { createStatelessDriver } from "../sql/stateless-driver.ts";
import type { PgReply, PgStatement } from "./pg-connection.ts";
import type { PgPool, Timeouts } from "./pg-pool.ts";

const readTimeouts: Timeouts = { waitMs: 1000, queryMs: 1000 };
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
        return toQueryResult(result as PgReply);
      }),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

export function toQuery({ sql, parameters }: CompiledQuery): PgStatement {
  return { text: sql, values: parameters };
}

export function toQueryResult({ rows, rowCount }: PgReply): QueryResult<unknown> {
  return { rows: [...rows], numAffectedRows: BigInt(rowCount ?? 0) };
}
