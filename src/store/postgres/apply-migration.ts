import type { CompiledQuery } from "kysely";
import { PatientConnection } from "./patient-connection.ts";
import { toStoreError } from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";

/**
 * From the first statement on. A statement that changes a table waits for its readers and writers, and all that come
 * after it wait behind it: so it gives up before their deadlines, and the migration is tried again later.
 */
const asStatements = [
  "SET LOCAL lock_timeout = '400ms'",
  // If this process stands still, others must not wait for it forever.
  "SET LOCAL idle_in_transaction_session_timeout = '5s'",
].join("; ");

/**
 * Runs the statements as one transaction, after the one that claims the migration. Another process that applies it is
 * waited for there, however long it takes. Throws `UniqueViolation` or `Unavailable`.
 */
export async function applyMigration(
  servers: PgServers,
  claim: CompiledQuery,
  statements: readonly CompiledQuery[],
): Promise<void> {
  const connection = new PatientConnection(servers);
  const run = ({ sql, parameters }: CompiledQuery) => connection.run(sql, parameters);
  try {
    await connection.transaction(async () => {
      await run(claim);
      await connection.run(asStatements);
      for (const statement of statements) await run(statement);
    });
  } catch (error) {
    throw toStoreError(error);
  } finally {
    connection.close();
  }
}
