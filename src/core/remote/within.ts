import { withTimeout } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";

/** The answer, if it comes in time. Otherwise rejects with `Unavailable`, and what comes later is ignored. */
export function within<Answer>(deadline: Deadline, answer: Promise<Answer>, message: string): Promise<Answer> {
  return withTimeout(answer, deadline, () => new Unavailable(message));
}
