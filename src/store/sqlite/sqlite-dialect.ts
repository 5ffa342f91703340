import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { SqliteWriter } from "./sqlite-writer.ts";
import type { SqlValue, Statement, StatementResult } from "./writer-protocol.ts";

/** Kysely on the embedded engine: SELECTs run here and now on the read connection, everything else in the writer thread. */
export function createSqliteDialect(reader: DatabaseSync, writer: SqliteWriter): Dialect {
  const connection = createConnection(reader, writer);
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createDriver(connection),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

export function toStatement({ sql, parameters }: CompiledQuery): Statement {
  return { sql, parameters: parameters as readonly SqlValue[] };
}

export function toQueryResult<Row>({ rows, changes }: StatementResult): QueryResult<Row> {
  return { rows: rows as Row[], numAffectedRows: BigInt(changes) };
}

function createConnection(reader: DatabaseSync, writer: SqliteWriter): DatabaseConnection {
  // The queries are few and fixed, so this stays small.
  const prepared = new Map<string, StatementSync>();
  return {
    async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
      if (!SelectQueryNode.is(query.query)) {
        const [result] = await writer.run([toStatement(query)]);
        return toQueryResult(result as StatementResult);
      }
      let statement = prepared.get(query.sql);
      if (statement === undefined) {
        statement = reader.prepare(query.sql);
        prepared.set(query.sql, statement);
      }
      return { rows: statement.all(...(query.parameters as SqlValue[])) as Row[] };
    },
    streamQuery() {
      throw new Error("the embedded engine does not stream");
    },
  };
}

function createDriver(connection: DatabaseConnection): Driver {
  const noTransactions = async () => {
    throw new Error("no interactive transactions: use SqlEngine.atomically");
  };
  return {
    init: async () => {},
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    beginTransaction: noTransactions,
    commitTransaction: noTransactions,
    rollbackTransaction: noTransactions,
    destroy: async () => {},
  };
}
