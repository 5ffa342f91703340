import type { Ambient } from "../../ambient/ambient.ts";
import { permitTimeoutMs } from "../../domain/deadlines.ts";
import * as tuning from "../../domain/permit-pool-tuning.ts";
import type { PermitGrant } from "../../domain/permit-window.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitChannel } from "../permit-channel.ts";

export interface InspectDeps extends Pick<Ambient, "clock"> {
  readonly channel: Pick<PermitChannel, "inspect">;
}

/**
 * The window of a strict limit, as a verification of this cost would find it. Permits that replicas hold may be unspent, or
 * spent and not reported yet. So they are recalled, and the ledger is asked again until all have come back or were reported,
 * or until a verification would no longer wait for them. What has not come back by then is in use or lost, or no recall
 * reaches its replica, which has a coordinator of its own: it counts as used. Undefined: there is no such limit any more.
 */
export async function inspectWindow(
  subject: string,
  cost: number,
  { channel, clock }: InspectDeps,
): Promise<PermitGrant | undefined> {
  const beganMs = clock.monotonicMs();
  let roundTripMs: number | undefined;
  for (let attempt = 0; ; attempt++) {
    const answer = await channel.inspect(subject);
    if (answer.outcome === "missing") return undefined;
    if (answer.outcome !== "settled") throw new Unavailable("the window of a limit is not known");
    const waitedMs = clock.monotonicMs() - beganMs;
    roundTripMs ??= waitedMs;
    const { left, outstanding } = answer;
    // If the cost fits already, or never will, only the displayed number can still change.
    const isDecided = cost <= left || cost > left + outstanding;
    const waitMaxMs = isDecided ? tuning.holdMs + 3 * roundTripMs : permitTimeoutMs(roundTripMs);
    if (outstanding === 0 || waitedMs >= waitMaxMs) return answer;
    // In one process others have returned theirs by now.
    const pauseMs = Math.min(tuning.retryMaxMs, attempt * tuning.retryMinMs);
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
