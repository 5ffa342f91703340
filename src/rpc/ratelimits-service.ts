import type { RatelimitsService } from "../../gen/latchkey/v1/ratelimits_pb.js";
import { andThen } from "../domain/maybe-promise.ts";
import { includesApi } from "../domain/root-key.ts";
import { type LimitAnswer, type LimitDeps, limit } from "../usecases/limit.ts";
import type { FrontHandlers } from "./endpoints.ts";
import { InvalidRequest } from "./invalid-request.ts";
import { found } from "./resource-methods.ts";

/** The methods of RatelimitsService. */
export function ratelimitsHandlers(deps: LimitDeps): FrontHandlers<typeof RatelimitsService> {
  return {
    limit(request, { caller }) {
      const { namespace, identifier, apiId, limit: max, duration, cost = 1, async = true } = request;
      if (caller?.apiIds !== undefined) checkApi(caller.apiIds, apiId);
      const rule = { mode: async ? "local" : "strict", limit: max, durationMs: duration } as const;
      return andThen(limit({ namespace, identifier, apiId, rule, cost }, deps), toAnswer);
    },
  };
}

function checkApi(apiIds: readonly string[], apiId: string | undefined): void {
  const message = "is needed, because the root key is limited to some APIs";
  if (apiId === undefined) throw new InvalidRequest([{ path: "apiId", message }]);
  found("api", includesApi(apiIds, apiId));
}

function toAnswer({ isWithin, state: { limit, remaining, resetMs } }: LimitAnswer) {
  return { success: isWithin, limit, remaining, reset: resetMs };
}
