import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { Random } from "./random.ts";

/** What a part gets from outside, so that tests can give it another. A part asks for what it uses: `Pick<Ambient, "clock">`. */
export interface Ambient {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}
