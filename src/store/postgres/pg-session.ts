import type { ClientConfig } from "pg";
import pg from "pg";
import { DatabaseRefused, isStartupSettingRefused } from "./pg-error.ts";

/*
 * A pooler may lend a connection to the server to one client after the other. So nothing that is acknowledged relies on
 * the session, and nothing is set for it: a `SET` would stay behind for the next client. What must hold is set within
 * each transaction, by `beginSafely` or by the guarded statement itself.
 */

/** Begins a transaction that is durable when it is acknowledged, and waits for no lock longer than a caller waits. */
export const beginSafely = [
  "BEGIN ISOLATION LEVEL READ COMMITTED",
  "SET LOCAL synchronous_commit = on",
  "SET LOCAL lock_timeout = '400ms'",
  "SET LOCAL statement_timeout = '5s'",
].join("; ");

/** What helps and is not relied on: plans are made once, and the server ends what nobody waits for any more. */
const helpfulSettings = [
  "plan_cache_mode=force_generic_plan",
  "default_transaction_isolation=read\\ committed",
  "lock_timeout=400ms",
  "statement_timeout=5s",
];

/** The helpful settings, sent with the wish to connect, until a pooler refuses to take them. */
export class StartupSettings {
  #isRefused = false;

  /** For node-postgres; a URL that has `options` of its own overrides them. */
  get options(): string | undefined {
    return this.#isRefused ? undefined : helpfulSettings.map((setting) => `-c ${setting}`).join(" ");
  }

  /** Whether it is they that were refused: then they are left out from now on, and connecting again can help. */
  wereRefused(error: unknown): boolean {
    if (this.#isRefused || !isStartupSettingRefused(error)) return false;
    this.#isRefused = true;
    return true;
  }
}

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
