import type { ClientConfig } from "pg";
import pg from "pg";
import { DatabaseRefused } from "./pg-error.ts";

/**
 * What every session of ours forces, whatever the server's defaults are: an acknowledged commit is on disk (and on the
 * synchronous standby, if there is one), plans are made once, and no lock is waited for longer than a caller waits.
 */
export const sessionSettings = [
  "SET synchronous_commit = on",
  "SET default_transaction_isolation = 'read committed'",
  "SET plan_cache_mode = force_generic_plan",
  "SET lock_timeout = '400ms'",
  "SET statement_timeout = '5s'",
].join("; ");

export function clientConfig(url: string, connectMs: number): ClientConfig {
  return {
    connectionString: url,
    application_name: "latchkey",
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  };
}

/** Throws `DatabaseRefused` where the URL cannot be used, such as when it names a certificate that is not there. */
export function checkUrl(url: string): void {
  try {
    new pg.Client({ connectionString: url });
  } catch (error) {
    throw new DatabaseRefused(`DATABASE_URL cannot be used: ${(error as Error).message}`);
  }
}

const int8 = 20;

/** 64-bit integers as numbers: ours are moments and counts, far below 2^53. */
function parserOf(oid: number, format?: "text" | "binary"): unknown {
  return oid === int8 ? Number : pg.types.getTypeParser(oid, format as "text");
}
