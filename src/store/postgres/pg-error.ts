import { Unavailable } from "../../domain/unavailable.ts";
import { isUntrustedCertificate } from "../../domain/untrusted-certificate.ts";
import { CheckViolation, UniqueViolation } from "../sql/sql-engine.ts";

/** The SQLSTATE of a server error; undefined for a connection error, after which the outcome is unknown. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : undefined;
}

/** A duplicate key, table or type: what a process can get if another one creates the same table at the same time. */
const alreadyThere = new Set(["23505", "42P07", "42710"]);

const checkViolation = "23514";

/** The error that callers of the store get. Bugs in our own SQL (class 42) stay unchanged. */
export function toStoreError(error: unknown): unknown {
  const state = sqlStateOf(error);
  if (alreadyThere.has(state ?? ""))
    return new UniqueViolation("a row with that key is there already", { cause: error });
  if (state === checkViolation)
    return new CheckViolation(String((error as { constraint?: string }).constraint), { cause: error });
  if (state?.startsWith("42") || error instanceof Unavailable) return error;
  return new Unavailable("the database did not answer", { cause: error });
}

/** Something in DATABASE_URL is wrong: a password, a name, a certificate. Waiting would not help. */
export class DatabaseRefused extends Error {
  override readonly name = "DatabaseRefused";
}

/** Node-postgres' error for a server without TLS. */
const withoutTls = "The server does not support SSL connections";

/**
 * Errors of PgBouncer, always with code 08P01, for which waiting does not help, and what to do about each. Its other
 * errors are temporary, for example that it has no connection to the server.
 */
const poolerRefusals: readonly [said: RegExp, remedy: string][] = [
  [/statement pooling mode/, "PgBouncer in statement pooling mode cannot carry transactions: set pool_mode = session"],
  [/^unsupported startup parameter/, "PgBouncer must be told to pass it over: set ignore_startup_parameters = options"],
  [/^(no such|database .* does not exist)/, "PgBouncer does not know this database"],
  [/authentication failed/, "PgBouncer does not let this user in"],
];

/** The same error, or `DatabaseRefused` if the settings are wrong. */
export function orRefused(error: unknown): unknown {
  if (error instanceof UnsafeTransaction) {
    const remedy = "set default_transaction_isolation = 'read committed' for the role and the database";
    return new DatabaseRefused(`${error.message}: ${remedy}`);
  }
  const cause = (error instanceof Unavailable ? error.cause : error) as
    | { code?: unknown; message?: string }
    | undefined;
  const byServer = /^(28|3D|42501)/.test(sqlStateOf(cause ?? {}) ?? "");
  // node-postgres gives up by itself if it has no password.
  if (byServer || cause?.message?.startsWith("SASL: "))
    return new DatabaseRefused(`the database refuses the connection: ${cause?.message}`);
  const message = cause?.message ?? "";
  const refusal = sqlStateOf(cause ?? {}) === "08P01" && poolerRefusals.find(([said]) => said.test(message));
  if (refusal) return new DatabaseRefused(`${refusal[1]} (it says: ${message})`);
  if (isUntrustedCertificate(String(cause?.code)) || cause?.message === withoutTls)
    return new DatabaseRefused(`the database cannot be trusted: ${cause?.message}`);
  return error;
}

/** Whether the server refused the statement's data: it would refuse it again, and nothing has happened. */
export function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlStateOf(error) ?? "");
}

/** Whether a lock was not available in time. Nothing of the statement has happened. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === "55P03";
}

/** Whether the server, or the pooler in front of it, accepts no more connections. */
export function isNoRoom(error: unknown): boolean {
  return (
    sqlStateOf(error) === "53300" ||
    (sqlStateOf(error) === "08P01" && (error as Error).message.startsWith("no more connections allowed"))
  );
}

/** Whether a pooler refuses a setting that was sent with the connection request. */
export function isStartupSettingRefused(error: unknown): boolean {
  return sqlStateOf(error) === "08P01" && (error as Error).message.startsWith("unsupported startup parameter");
}

/** Whether the prepared statement is missing: a pooler may send each transaction to another server connection. */
export function isStatementElsewhere(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "26000" || state === "42P05";
}

/**
 * Whether the server says that nothing of the statement has happened. Errors about the connection (08, 57P, 58) may come
 * from a pooler that has lost the server in the middle of it, and 40003 says itself that it is unknown.
 */
export function isRolledBack(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !/^(08|57P|58|XX|40003)/.test(state);
}

/** A transaction did not have the settings that its safety depends on. Nothing of it has happened. */
export class UnsafeTransaction extends Unavailable {
  constructor() {
    super("the database's transactions are not READ COMMITTED, and a pooler keeps us from setting it");
  }
}

/** Whether the connection can still be used: not after a connection error, and not on a server that accepts no writes. */
export function isConnectionUsable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && state !== "25006" && !state.startsWith("57") && !state.startsWith("08");
}

/** The function of the server that waits for the standby. Its text is translated, and its code is that of any warning. */
const waitForStandby = "SyncRepWaitForLSN";

/**
 * Whether a notice says that the server stopped waiting for its synchronous standby: the commit is there, but a failover
 * could still undo it. node-postgres resolves the query all the same. A warning that does not say where it comes from is
 * taken for one.
 */
export function isUnconfirmedCommit({ code, routine }: { [Name in "code" | "routine"]?: string | undefined }): boolean {
  return routine === undefined ? code === "01000" : routine === waitForStandby;
}
