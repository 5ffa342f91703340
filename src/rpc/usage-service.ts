import type { UsageService } from "../../gen/latchkey/v1/usage_pb.js";
import { boundariesIn, type Granularity, readingsMax, type SpendingRange } from "../domain/spending.ts";
import { nextRefillMs } from "../domain/usage.ts";
import { getSpending, type Spending } from "../usecases/get-spending.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { ApiError } from "./api-error.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { invalid } from "./invalid-request.ts";

/** Most questions about usage that one root key may have under way: others get their turn. */
const questionsMax = 2;

/** The methods of UsageService. */
export function usageHandlers({ clock }: Pick<EventDeps, "clock">): ManagementHandlers<typeof UsageService> {
  const asking = new Map<string, number>();
  return {
    async getSpending(request, { management, caller }) {
      const { keyIds, ownerIds, start: startMs, end: endMs } = request;
      const of = keyIds.length > 0 ? "key" : "owner";
      const ids = of === "key" ? keyIds : ownerIds;
      const granularity = (request.granularity ?? "total") as Granularity;
      const boundaries = boundariesOf({ startMs, endMs, granularity }, ids.length);
      const ask = () => getSpending(management, { of, ids, boundaries, nowMs: clock.nowMs() });
      const answer = await asOneOfFew(asking, caller?.rootKeyId ?? "", ask);
      if ("oldestMs" in answer) {
        const { oldestMs, unit } = answer;
        throw invalid(
          "start",
          `must not be before ${new Date(oldestMs).toISOString()}, the oldest ${unit} that is kept`,
        );
      }
      return { results: answer.map((spending) => toSpendingMessage(of, spending)) };
    },
  };
}

async function asOneOfFew<Answer>(
  asking: Map<string, number>,
  by: string,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const others = asking.get(by) ?? 0;
  if (others === questionsMax) {
    const message = `this root key has ${questionsMax} such calls under way; try again when one is answered`;
    throw new ApiError("TOO_MANY_REQUESTS", message, { retryAfterMs: 1000 });
  }
  asking.set(by, others + 1);
  try {
    return await ask();
  } finally {
    const left = (asking.get(by) as number) - 1;
    if (left === 0) asking.delete(by);
    else asking.set(by, left);
  }
}

/** Throws if the range is refused. */
function boundariesOf(range: SpendingRange, counters: number): readonly number[] {
  const found = boundariesIn(range);
  if ("field" in found) throw invalid(found.field, found.message);
  if ((found.length - 1) * counters > readingsMax)
    throw invalid("granularity", `asks for more than ${readingsMax} buckets of all counters: ask for fewer of either`);
  return found;
}

function toSpendingMessage(of: "key" | "owner", { id, spent, buckets, counter, runsOutAtMs: runsOutAt }: Spending) {
  return {
    ...(of === "key" ? { keyId: id } : { ownerId: id }),
    spent,
    buckets: buckets.map(({ startMs: start, endMs: end, spent, isRunning: running }) => ({
      start,
      end,
      spent,
      running,
    })),
    meteredSince: counter?.meter.sinceMs,
    remaining: counter?.remaining,
    nextRefillAt: counter && nextRefillMs(counter),
    runsOutAt,
  };
}
