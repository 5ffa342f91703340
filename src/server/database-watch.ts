import type { Ambient } from "../ambient/ambient.ts";
import type { Log } from "../ambient/log.ts";

/** Rejects while the database accepts no writes. */
export type DatabaseCheck = () => Promise<void>;

const defaultEveryMs = 2000;

/**
 * Checks the database periodically, so that gauge and log show an outage even without traffic. Each change is logged
 * once, with the server's own error code.
 */
export class DatabaseWatch {
  readonly #log: Log;
  readonly #everyMs: number;
  #isUp = false;
  #timer: NodeJS.Timeout | undefined;

  /** Down until it is started. */
  constructor({ log, metrics }: Pick<Ambient, "log" | "metrics">, everyMs = defaultEveryMs) {
    this.#log = log;
    this.#everyMs = everyMs;
    const help = "1 while the database answers and takes changes, 0 while it does not.";
    metrics.gauge("latchkey_database_up", help, () => Number(this.#isUp));
  }

  /** The database is there. */
  start(check: DatabaseCheck): void {
    this.#isUp = true;
    let isAsking = false;
    this.#timer = setInterval(async () => {
      if (isAsking) return;
      isAsking = true;
      await check().then(
        () => this.#becomeUp(),
        (error: unknown) => this.#becomeDown(error),
      );
      isAsking = false;
    }, this.#everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #becomeUp(): void {
    if (!this.#isUp) this.#log.info("the database is back");
    this.#isUp = true;
  }

  #becomeDown(error: unknown): void {
    if (this.#isUp) this.#log.warn("the database is away", { reason: reasonOf(error) });
    this.#isUp = false;
  }
}

/**
 * Why the database cannot be used. Codes of Node and Postgres contain nothing of the URL, and neither do errors without
 * a code, such as a timeout. The message of a server or pooler is added to its code, because a pooler has one code for
 * everything.
 */
export function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; severity?: string; message: string } };
  if (cause === undefined) return message;
  if (cause.code === undefined) return cause.message;
  return cause.severity === undefined ? cause.code : `${cause.code} ${cause.message}`;
}
