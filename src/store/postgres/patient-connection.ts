import { systemClock } from "../../ambient/clock.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Sql } from "../sql/sql.ts";
import { PgConnection, type PgReply, toPgStatement } from "./pg-connection.ts";
import { toStoreError } from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";
import { settingsWithoutTimeouts } from "./pg-session.ts";

/** The most that Node's timers can wait. */
const anyTimeMs = 2 ** 31 - 1;

/** For itself alone, because a pooler may lead to a session with other settings. */
const begin = [
  "BEGIN ISOLATION LEVEL READ COMMITTED",
  "SET LOCAL synchronous_commit = on",
  "SET LOCAL lock_timeout = 0",
  "SET LOCAL statement_timeout = 0",
].join("; ");

/** A connection for work that takes as long as it takes, whatever the time-outs of requests and of the role are. */
export class PatientConnection {
  readonly #connection: PgConnection;

  constructor(servers: PgServers) {
    this.#connection = new PgConnection(servers, { settings: settingsWithoutTimeouts });
  }

  /** Throws the error of the server or the connection. */
  async run(text: string, values: readonly unknown[] = []): Promise<PgReply> {
    // An attempt to connect ends by itself.
    await this.#connection.ready();
    return this.#connection.session().run({ text, values }, new Deadline(systemClock, anyTimeMs));
  }

  /**
   * Runs the work as one transaction on this connection. When it resolves, this and everything that was committed before is
   * on the disk. Throws as `run` does, and `Unavailable` if the synchronous standby has not confirmed the commit.
   */
  async transaction(work: () => Promise<void>): Promise<void> {
    await this.run(begin);
    try {
      await work();
    } catch (error) {
      await this.run("ROLLBACK").catch(() => {});
      throw error;
    }
    const { doubtful } = await this.run("COMMIT");
    if (doubtful) throw new Unavailable("the standby has not confirmed the commit");
  }

  /** What is under way may or may not happen. */
  close(): void {
    this.#connection.close();
  }
}

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
export async function applyMigration(servers: PgServers, claim: Sql, statements: readonly Sql[]): Promise<void> {
  const connection = new PatientConnection(servers);
  const run = (statement: Sql) => {
    const { text, values } = toPgStatement(statement);
    return connection.run(text, values);
  };
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
