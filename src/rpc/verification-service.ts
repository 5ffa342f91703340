import type { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import type { RatelimitsService } from "../../gen/latchkey/v1/ratelimits_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import { type IpAddress, parseIpAddress } from "../domain/ip-allow.ts";
import { andThen } from "../domain/maybe-promise.ts";
import { createQueryParser, type PermissionQuery, QuerySyntaxError } from "../domain/permission-query.ts";
import { includesApi } from "../domain/root-key.ts";
import { Secret } from "../domain/secret.ts";
import type { Verdict } from "../domain/verification.ts";
import type { Caller } from "../usecases/authorise.ts";
import { type ExplainKeyDeps, explainKey } from "../usecases/explain-key.ts";
import { type LimitAnswer, type LimitDeps, limit } from "../usecases/limit.ts";
import { createVerifyKey, type VerifyKeyDeps } from "../usecases/verify-key.ts";
import type { FrontHandlers } from "./endpoints.ts";
import { invalid } from "./invalid-request.ts";
import { toCosts, toExplanation, toVerification } from "./key-messages.ts";
import { found } from "./resource-methods.ts";

/** What verifications and their explanations need. */
export type VerificationDeps = Pick<Ambient, "metrics"> & VerifyKeyDeps & ExplainKeyDeps;

/** The methods of KeysService that a front answers itself. */
export function verificationHandlers(deps: VerificationDeps): FrontHandlers<typeof KeysService> {
  const { metrics } = deps;
  const verifyKey = createVerifyKey(deps);
  const parseQuery = createQueryParser();

  function readQuery(text: string | undefined): PermissionQuery | undefined {
    try {
      return text === undefined ? undefined : parseQuery(text);
    } catch (error) {
      throw error instanceof QuerySyntaxError ? invalid("permissions", error.message) : error;
    }
  }

  return {
    verifyKey(request, { call, caller }) {
      const answer = (verdict: Verdict) => {
        metrics.verified(verdict.code);
        return toVerification(verdict, call.requestId);
      };
      const { apiId } = request;
      const key = new Secret(request.key);
      const permissions = readQuery(request.permissions);
      const ip = readAddress(request.ip);
      const asked = { key, apiId, apiIds: caller?.apiIds, permissions, ip, costs: toCosts(request) };
      return andThen(verifyKey(asked), answer);
    },

    async explainKey(request, { caller, note }) {
      const { apiId, keyId, key = "" } = request;
      const by = keyId === undefined ? { key: new Secret(key) } : { keyId };
      const permissions = readQuery(request.permissions);
      const asked = { by, apiId, permissions, ip: readAddress(request.ip), costs: toCosts(request) };
      const explanation = await explainKey((caller as Caller).rootKey, asked, deps);
      found("key", keyId === undefined || explanation.code !== "NOT_FOUND");
      note({ keyId });
      return toExplanation(explanation);
    },
  };
}

function readAddress(text: string | undefined): IpAddress | undefined {
  if (text === undefined) return undefined;
  const address = parseIpAddress(text);
  if (address === undefined) throw invalid("ip", "must be an IP address, without a port");
  return address;
}

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
  if (apiId === undefined) throw invalid("apiId", "is needed, because the root key is limited to some APIs");
  found("api", includesApi(apiIds, apiId));
}

function toAnswer({ isWithin, state: { limit, remaining, resetMs } }: LimitAnswer) {
  return { success: isWithin, limit, remaining, reset: resetMs };
}
