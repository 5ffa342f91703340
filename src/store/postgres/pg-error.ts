import { Unavailable } from "../../domain/unavailable.ts";
import { UniqueViolation } from "../sql/sql-engine.ts";

/** The SQLSTATE of an error that the server sent; undefined for one of the connection, after which nothing is known. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : undefined;
}

/** A duplicate key, table or type: each is what one of two processes can get that make the same table at once. */
const alreadyThere = new Set(["23505", "42P07", "42710"]);

/** An error as the store's callers know it. Mistakes in our own SQL (class 42) stay what they are. */
export function toStoreError(error: unknown): unknown {
  const state = sqlStateOf(error);
  if (alreadyThere.has(state ?? ""))
    return new UniqueViolation("a row with that key is there already", { cause: error });
  if (state?.startsWith("42")) return error;
  return new Unavailable("the database did not answer", { cause: error });
}

/** Something in DATABASE_URL is wrong: a password, a name, a certificate. Waiting would not help. */
export class DatabaseRefused extends Error {
  override readonly name = "DatabaseRefused";
}

/** What Node says of a certificate that it does not trust, and node-postgres of a server without TLS. */
const untrusted = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/;
const withoutTls = "The server does not support SSL connections";

/** The same error, or `DatabaseRefused` if it says that the settings are wrong. */
export function orRefused(error: unknown): unknown {
  const cause = (error instanceof Unavailable ? error.cause : error) as
    | { code?: unknown; message?: string }
    | undefined;
  const byServer = /^(28|3D|42501)/.test(sqlStateOf(cause ?? {}) ?? "");
  // node-postgres gives up by itself where it has no password to answer with.
  if (byServer || cause?.message?.startsWith("SASL: "))
    return new DatabaseRefused(`the database refuses the connection: ${cause?.message}`);
  if (untrusted.test(String(cause?.code)) || cause?.message === withoutTls)
    return new DatabaseRefused(`the database cannot be trusted: ${cause?.message}`);
  return error;
}

/** Whether the server refused the statement for the data in it: it would again, and nothing of it has happened. */
export function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlStateOf(error) ?? "");
}

/** Whether the connection is still of use: after an error of its own, or on a server that takes no writes, it is not. */
export function isConnectionUsable(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && state !== "25006" && !state.startsWith("57") && !state.startsWith("08");
}

/**
 * Whether a notice says that the server stopped waiting for its synchronous standby: the commit is there, but a failover
 * could still undo it. node-postgres resolves the query all the same.
 */
export function isUnconfirmedCommit({ code }: { code?: string | undefined }): boolean {
  return code === "01000";
}
