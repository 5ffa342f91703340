import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RootKeyAnswer_Verdict, RootKeyAnswerSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import type { RootKeyVerdict } from "../domain/root-key.ts";

/* What is known of a root key, as it goes over the internal streams. */

export function toWireVerdict(verdict: RootKeyVerdict | undefined): MessageInitShape<typeof RootKeyAnswerSchema> {
  if (verdict === undefined) return {};
  const { rootKeyId, permissions, apiIds, expiresAtMs } = verdict;
  const limits = { isLimited: apiIds !== undefined, apiIds: [...(apiIds ?? [])] };
  return { verdict: { rootKeyId, permissions: [...permissions], ...limits, expiresAtMs } };
}

/** As a coordinator has sent it: it is believed. */
export function fromWireVerdict(verdict: RootKeyAnswer_Verdict | undefined): RootKeyVerdict | undefined {
  if (verdict === undefined) return undefined;
  const { rootKeyId, permissions, isLimited, apiIds, expiresAtMs } = verdict;
  return { rootKeyId, permissions, apiIds: isLimited ? apiIds : undefined, expiresAtMs };
}
