import type { Log, LogFields } from "./log.ts";

/** Logs what goes wrong: each kind of trouble once, until all is well again. */
export class Troubles {
  readonly #log: Pick<Log, "info" | "warn">;
  readonly #logged = new Set<string>();

  constructor(log: Pick<Log, "info" | "warn">) {
    this.#log = log;
  }

  /** Whether something went wrong and has not ended. */
  get areOpen(): boolean {
    return this.#logged.size > 0;
  }

  /** `kind`: what counts as the same trouble, where one message has several. */
  begin(message: string, fields: LogFields, kind = message): void {
    if (this.#logged.has(kind)) return;
    this.#logged.add(kind);
    this.#log.warn(message, fields);
  }

  end(message: string, fields?: LogFields): void {
    if (this.areOpen) this.#log.info(message, fields);
    this.#logged.clear();
  }
}
