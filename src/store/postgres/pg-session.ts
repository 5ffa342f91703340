import type { ClientConfig } from "pg";
import pg from "pg";
import { splitPostgresUrl } from "../../domain/postgres-url.ts";
import { DatabaseRefused, isStartupSettingRefused } from "./pg-error.ts";

/*
 * A pooler may give one server connection to different clients in turn. So nothing that is acknowledged depends on the
 * session, and nothing is set for it: a `SET` would stay for the next client. Required settings are set within each
 * transaction, by `beginSafely` or by the guarded statement itself.
 */

/** No longer than a caller of any change waits. */
export const lockTimeout = "400ms";

const transactionSettings = {
  synchronous_commit: "on",
  lock_timeout: lockTimeout,
  statement_timeout: "5s",
  // An open transaction holds up the change feed's positions: one whose process stands still is ended by the server.
  idle_in_transaction_session_timeout: "5s",
};
const setForTransaction = ([name, value]: readonly [string, string]) => `set_config('${name}', '${value}', true)`;

/** Begin a transaction that is durable when acknowledged, and waits for a lock no longer than its caller waits. */
export const beginSafely: readonly { readonly text: string; readonly values: readonly unknown[] }[] = [
  { text: "BEGIN ISOLATION LEVEL READ COMMITTED", values: [] },
  { text: `SELECT ${Object.entries(transactionSettings).map(setForTransaction).join(", ")}`, values: [] },
];

/** Helpful settings that nothing depends on: plans are made once, and the server ends statements without a caller. */
const helpfulSettings: readonly string[] = [
  "plan_cache_mode=force_generic_plan",
  "default_transaction_isolation=read\\ committed",
  `lock_timeout=${lockTimeout}`,
  "statement_timeout=5s",
];

/** Replace the time-outs of the role and of the database, for work that is no request. */
export const settingsWithoutTimeouts: readonly string[] = ["lock_timeout=0", "statement_timeout=0"];

/** Settings that are sent with the connection request, until a pooler refuses them. */
export class StartupSettings {
  readonly #settings: readonly string[];
  #isRefused = false;

  constructor(settings = helpfulSettings) {
    this.#settings = settings;
  }

  /** For node-postgres. `options` in the URL override them. */
  get options(): string | undefined {
    return this.#isRefused ? undefined : this.#settings.map((setting) => `-c ${setting}`).join(" ");
  }

  /** Whether these settings were refused. Then they are left out from now on, and connecting again can help. */
  wereRefused(error: unknown): boolean {
    if (this.#isRefused || !isStartupSettingRefused(error)) return false;
    this.#isRefused = true;
    return true;
  }
}

export function clientConfig(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: "latchkey",
    keepAlive: true,
    // An idle connection is not forgotten by what lies in between.
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  };
}

/** Throws `DatabaseRefused` if the URL cannot be used, for example because it names a missing certificate file. */
export function checkUrl(url: string, name = "DATABASE_URL"): void {
  try {
    for (const connectionString of splitPostgresUrl(url)) new pg.Client({ connectionString });
  } catch (error) {
    throw new DatabaseRefused(`${name} cannot be used: ${(error as Error).message}`);
  }
}

const int8 = 20;

/** 64-bit integers as numbers: ours are times and counts, far below 2^53. */
export function parserOf(oid: number): (text: string) => unknown {
  return oid === int8 ? Number : pg.types.getTypeParser(oid, "text");
}
