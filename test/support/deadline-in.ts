import { systemClock } from "../../src/ambient/clock.ts";
import { Deadline } from "../../src/domain/deadlines.ts";

export function deadlineIn(ms: number): Deadline {
  return new Deadline(systemClock, ms);
}
