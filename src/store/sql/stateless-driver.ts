import type { CompiledQuery, Driver, QueryResult } from "kysely";

export type ExecuteQuery = (query: CompiledQuery) => Promise<QueryResult<unknown>>;

/** A Kysely driver for an engine that runs each query by itself. Transactions go through `SqlEngine.atomically`. */
export function createStatelessDriver(execute: ExecuteQuery): Driver {
  const connection = {
    executeQuery: <Row>(query: CompiledQuery) => execute(query) as Promise<QueryResult<Row>>,
    streamQuery() {
      throw new Error("nothing here streams");
    },
  };
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
