import type { StatementSync } from "node:sqlite";
import {
  type CompiledQuery,
  type Dialect,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { createStatelessDriver, type ExecuteQuery } from "../sql/stateless-driver.ts";
import type { Reading } from "./find-on-reader.ts";
import { readOr503 } from "./read-or-503.ts";
import type { SqliteWriter } from "./sqlite-writer.ts";
import type { SqlValue, Statement, StatementResult } from "./writer-protocol.ts";

/**
 * Kysely on the embedded engine: SELECTs run synchronously on the read connection, everything else in the writer thread.
 */
export function createSqliteDialect(connections: Reading & { readonly writer: SqliteWriter }): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createStatelessDriver(executeOn(connections)),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

export function toStatement({ sql, parameters }: CompiledQuery): Statement {
  return { sql, parameters: parameters as readonly SqlValue[] };
}

export function toQueryResult({ rows, changes }: StatementResult): QueryResult<unknown> {
  return { rows: [...rows], numAffectedRows: BigInt(changes) };
}

function executeOn({ reader, reads, writer, onDamage }: Parameters<typeof createSqliteDialect>[0]): ExecuteQuery {
  // The queries are few and fixed, so this stays small.
  const prepared = new Map<string, StatementSync>();
  return async (query) => {
    if (!SelectQueryNode.is(query.query)) {
      const [result] = await writer.run([toStatement(query)]);
      return toQueryResult(result as StatementResult);
    }
    return readOr503(onDamage, () => {
      reads.endNow();
      let statement = prepared.get(query.sql);
      if (statement === undefined) {
        statement = reader.prepare(query.sql);
        prepared.set(query.sql, statement);
      }
      return { rows: statement.all(...(query.parameters as SqlValue[])) };
    });
  };
}
