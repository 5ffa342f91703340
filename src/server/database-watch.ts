import type { Ambient } from "../ambient/ambient.ts";
import { Troubles } from "../ambient/troubles.ts";

/** Rejects while the database accepts no writes. */
export type DatabaseCheck = () => Promise<void>;

const defaultEveryMs = 2000;

/**
 * Checks the database periodically, so that gauge and log show an outage even without traffic. Each change is logged
 * once, with the server's own error code.
 */
export class DatabaseWatch {
  readonly #troubles: Troubles;
  readonly #everyMs: number;
  #isStarted = false;
  #timer: NodeJS.Timeout | undefined;

  /** Down until it is started. */
  constructor({ log, metrics }: Pick<Ambient, "log" | "metrics">, everyMs = defaultEveryMs) {
    this.#troubles = new Troubles(log);
    this.#everyMs = everyMs;
    const help = "1 while the database answers and takes changes, 0 while it does not.";
    metrics.gauge("latchkey_database_up", help, () => Number(this.#isStarted && !this.#troubles.areOpen));
  }

  /** The database is there. */
  start(check: DatabaseCheck): void {
    this.#isStarted = true;
    let isAsking = false;
    this.#timer = setInterval(async () => {
      if (isAsking) return;
      isAsking = true;
      await check().then(
        () => this.#troubles.end("the database is back"),
        (error: unknown) => this.#troubles.begin("the database is away", { reason: reasonOf(error) }),
      );
      isAsking = false;
    }, this.#everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
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
