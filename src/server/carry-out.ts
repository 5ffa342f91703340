import type { Ambient } from "../ambient/ambient.ts";
import type { ForwardedAnswer, ForwardedCall } from "../domain/forwarded-call.ts";
import { createAllEndpoints } from "../rpc/all-endpoints.ts";
import { createRunCall } from "../rpc/call.ts";
import { createAnswerForwarded } from "../rpc/forwarded-calls.ts";
import { prepareLater } from "../rpc/prepare-later.ts";
import type { Management } from "../store/management.ts";
import type { CheckRootKey } from "../store/root-access.ts";

/**
 * Carries out management calls that fronts have forwarded: other threads, or edges. They count them; here they are logged.
 * Resolves to undefined if there is no such method.
 */
export function createCarryOut(
  deps: Ambient & { readonly checkRootKey: CheckRootKey },
): (call: ForwardedCall, management: Management) => Promise<ForwardedAnswer | undefined> {
  const metrics = { ...deps.metrics, called() {} };
  const endpoints = createAllEndpoints({ core: deps });
  prepareLater(endpoints);
  return createAnswerForwarded(endpoints, createRunCall({ ...deps, metrics }));
}
