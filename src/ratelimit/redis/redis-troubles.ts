import type { LogFields } from "../../ambient/log.ts";
import { Troubles } from "../../ambient/troubles.ts";
import { isReply, redisReason } from "./locate-server.ts";

/** Logs why Redis cannot be used: each reason once, until it can be used again. */
export class RedisTroubles extends Troubles {
  warn(error: Error, fields: LogFields): void {
    const reason = redisReason(error);
    this.begin(isReply(error) ? "Redis refuses" : "Redis is away", { ...fields, reason }, reason);
  }
}
