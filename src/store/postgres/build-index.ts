import { setTimeout as delay } from "node:timers/promises";
import { Unavailable } from "../../domain/unavailable.ts";
import { createIndexText, type IndexDefinition } from "../sql/migrations.ts";
import { UniqueViolation } from "../sql/sql-engine.ts";
import { PatientConnection } from "./patient-connection.ts";
import { DatabaseRefused, sqlStateOf, toStoreError } from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";

export interface BuildIndexOptions {
  readonly servers: PgServers;
  /** Ends the waiting. A build that the server has begun goes on there, and is found by the next attempt. */
  readonly signal?: AbortSignal | undefined;
  /** Called once, when this process begins to build the index or to wait for another process that does. */
  readonly onIndexBuild?: ((index: string, by: "this process" | "another process") => void) | undefined;
}

/** How often a process that waits for the index looks again. */
const lookEveryMs = 500;

/**
 * Builds the index while other processes read and write the table. CREATE INDEX CONCURRENTLY waits for every transaction
 * that is older than itself, and two of them on one table wait for each other. So there is one builder at a time.
 *
 * The builder holds a lock in a transaction of its own on a second connection, because a lock of the session would not
 * last behind a pooler. That transaction writes nothing and is READ COMMITTED, so between its statements it has neither a
 * transaction id nor a snapshot, and the build does not wait for it. Others ask for the lock without waiting in the
 * server, where the build would wait for them. If the lock is lost, the server still reports that it builds.
 */
export async function buildIndex(index: IndexDefinition, options: BuildIndexOptions): Promise<void> {
  const builder = new PatientConnection(options.servers);
  const lock = new PatientConnection(options.servers);
  const close = () => {
    builder.close();
    lock.close();
  };
  options.signal?.addEventListener("abort", close);
  try {
    await buildWith(builder, lock, index, options);
  } catch (error) {
    throw options.signal?.aborted ? new Unavailable("the store is closed") : await explained(error, builder);
  } finally {
    options.signal?.removeEventListener("abort", close);
    close();
  }
}

async function buildWith(
  builder: PatientConnection,
  lock: PatientConnection,
  index: IndexDefinition,
  { signal, onIndexBuild }: BuildIndexOptions,
): Promise<void> {
  let isReported = false;
  const report = (by: "this process" | "another process") => {
    if (!isReported) onIndexBuild?.(index.name, by);
    isReported = true;
  };
  for (let isLocked = false; ; ) {
    isLocked ||= await takeLock(lock);
    // Not in the transaction of the lock, which would go on seeing what it has seen of other sessions.
    const { rows } = await builder.run(stateText, [index.table, index.name]);
    const [{ is_valid, is_being_built } = { is_valid: null, is_being_built: false }] = rows as unknown as StateRow[];
    if (is_valid) return;
    if (!isLocked || is_being_built) {
      report("another process");
      await delay(lookEveryMs, undefined, { signal });
      continue;
    }
    report("this process");
    // What a build has left that was interrupted. It cannot be continued, but every change of the table maintains it.
    if (is_valid === false) await builder.run(`DROP INDEX CONCURRENTLY IF EXISTS ${index.name}`);
    await builder.run(createIndexText(index, "CONCURRENTLY"));
  }
}

interface StateRow {
  /** Null: there is no such index. */
  readonly is_valid: boolean | null;
  readonly is_being_built: boolean;
}

/** $1 the table  $2 the index */
const stateText = `
SELECT (SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = $1::regclass AND c.relname = $2) AS is_valid,
  EXISTS (SELECT FROM pg_stat_progress_create_index WHERE relid = $1::regclass) AS is_being_built`;

/** Whether we have the lock. It is released when the connection is closed. */
async function takeLock(connection: PatientConnection): Promise<boolean> {
  await connection.run(
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0",
  );
  const { rows } = await connection.run(
    "SELECT pg_try_advisory_xact_lock(hashtextextended('latchkey builds an index', 0)) AS taken",
  );
  if (rows[0]?.taken === true) return true;
  await connection.run("ROLLBACK");
  return false;
}

/** The error that callers get. Behind a pooler the role's time-outs count, which only its owner can change. */
async function explained(error: unknown, builder: PatientConnection): Promise<unknown> {
  if (/^(57014|55P03)$/.test(sqlStateOf(error) ?? "")) {
    const { rows } = await builder.run(timeoutsText).catch(() => ({ rows: [] }));
    if (rows.length > 0) {
      const names = rows.map(({ name }) => name).join(" and ");
      return new DatabaseRefused(
        `an index could not be built within ${names} of the database's role, which a pooler keeps us from setting: ` +
          "run latchkey migrate up with a DATABASE_URL that leads to Postgres itself",
      );
    }
  }
  const storeError = toStoreError(error);
  // Only the index itself can be there already: a process that had lost its lock was still at it.
  return storeError instanceof UniqueViolation
    ? new Unavailable("another process has built the index", { cause: error })
    : storeError;
}

const timeoutsText =
  "SELECT name FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout') AND setting <> '0' ORDER BY name";
