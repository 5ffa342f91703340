import { isExpired } from "./expiry.ts";

/** What is known of a root key that was presented: what its holder may do. Plain data. */
export interface RootKeyVerdict {
  readonly rootKeyId: string;
  readonly permissions: readonly string[];
  /** The APIs that it is limited to; undefined: all. */
  readonly apiIds: readonly string[] | undefined;
  readonly expiresAtMs: number | undefined;
}

/** May do everything, for ever. */
export function unlimitedRootKey(rootKeyId: string): RootKeyVerdict {
  return { rootKeyId, permissions: ["*"], apiIds: undefined, expiresAtMs: undefined };
}

/** Whether there is such a root key at this moment. */
export function isInForce(verdict: RootKeyVerdict | undefined, nowMs: number): verdict is RootKeyVerdict {
  return verdict !== undefined && !isExpired(verdict.expiresAtMs, nowMs);
}

/** Whether the holder may know of this API. `apiIds` are those of its root key. */
export function includesApi(apiIds: readonly string[] | undefined, apiId: string): boolean {
  return apiIds === undefined || apiIds.includes(apiId);
}
