import type { Log, LogFields } from "../../ambient/log.ts";
import { isReply, reasonOf } from "./locate-server.ts";

/** Tells the log why Redis cannot be used: each reason once, until it can be used again. */
export class RedisTroubles {
  readonly #log: Log;
  readonly #toldReasons = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  tell(error: Error, fields: LogFields): void {
    const reason = reasonOf(error);
    if (this.#toldReasons.has(reason)) return;
    this.#toldReasons.add(reason);
    this.#log.warn(isReply(error) ? "Redis refuses" : "Redis is away", { ...fields, reason });
  }

  end(fields: LogFields): void {
    if (this.#toldReasons.size > 0) this.#log.info("Redis is back", fields);
    this.#toldReasons.clear();
  }
}
