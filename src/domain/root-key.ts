import { isExpired } from "./expiry.ts";
import type { ChangesOf, PropertiesOf, Stored } from "./fields.ts";
import { covers } from "./permissions.ts";
import type { RootKeyFields } from "./resources.ts";

/** What a root key allows. */
export type Allowance = Pick<PropertiesOf<RootKeyFields>, "permissions" | "apiIds" | "expiresAtMs">;

/** What is known of a root key that was presented: what its holder may do. Plain data. */
export interface RootKeyVerdict extends Allowance {
  readonly rootKeyId: string;
}

/** A root key as it is read. Its secret is not part of it. */
export interface StoredRootKey extends PropertiesOf<RootKeyFields>, Stored {
  /** The first characters of its secret. */
  readonly start: string;
}

/** A root key to store. */
export interface NewRootKey extends Omit<StoredRootKey, "updatedAtMs" | "version"> {
  readonly digest: string;
}

export type RootKeyFieldChanges = ChangesOf<RootKeyFields>;

/** What a root key would allow after these changes. */
export function allowanceAfter(before: Allowance, changes: RootKeyFieldChanges): Allowance {
  const { permissions = before.permissions, apiIds = before.apiIds, expiresAtMs = before.expiresAtMs } = changes;
  return { permissions, apiIds: apiIds ?? undefined, expiresAtMs: expiresAtMs ?? undefined };
}

/**
 * Why the holder of one root key may not grant, change or revoke another that allows this; undefined if it may. Otherwise a
 * root key could give itself what it was not given.
 */
export function grantRefusal(granter: Allowance, granted: Allowance): string | undefined {
  if (granter.apiIds !== undefined) return "a root key that is limited to APIs cannot manage root keys";
  const missing = granted.permissions.find((permission) => !covers(granter.permissions, permission));
  if (missing !== undefined)
    return `the root key lacks the permission ${missing}, which the other one has or would have`;
  const { expiresAtMs: lastMs = Number.POSITIVE_INFINITY } = granted;
  if (granter.expiresAtMs !== undefined && lastMs > granter.expiresAtMs) {
    return "the root key expires, and the other one lives longer or would";
  }
  return undefined;
}

/** May do everything, forever. */
export function unlimitedRootKey(rootKeyId: string): RootKeyVerdict {
  return { rootKeyId, permissions: ["*"], apiIds: undefined, expiresAtMs: undefined };
}

/** Whether there is such a root key at this moment. */
export function isInForce(verdict: RootKeyVerdict | undefined, nowMs: number): verdict is RootKeyVerdict {
  return verdict !== undefined && !isExpired(verdict.expiresAtMs, nowMs);
}

/**
 * Whether the holder of a root key that is limited to `apiIds` may know of what concerns these: some APIs, all of them its
 * own. Undefined: what concerns all APIs.
 */
export function includesApis(apiIds: readonly string[], concerned: readonly string[] | undefined): boolean {
  return concerned?.every((apiId) => apiIds.includes(apiId)) ?? false;
}

/** Whether the holder may know of this API. `apiIds` are those of its root key. */
export function includesApi(apiIds: readonly string[] | undefined, apiId: string): boolean {
  return apiIds === undefined || apiIds.includes(apiId);
}

/** A call that needs a root key came with something else, or with a root key that is no longer valid. Nothing was done. */
export class RootKeyRefused extends Error {
  override readonly name = "RootKeyRefused";

  constructor() {
    super("the root key is not valid");
  }
}

/** The caller's root key is valid and may not do this. Nothing was done. Its message is safe to show to the caller. */
export class Forbidden extends Error {
  override readonly name = "Forbidden";
}

export function lacksPermission(permission: string): Forbidden {
  return new Forbidden(`the root key lacks the permission ${permission}`);
}

/** Nobody could have a valid root key, and none is generated without being asked for. */
export class RootKeyRetired extends Error {
  override readonly name = "RootKeyRetired";

  constructor() {
    super(
      "no root key would be valid: the generated one was retired when LATCHKEY_ROOT_KEY was set, and none is set now. " +
        "Set LATCHKEY_ROOT_KEY again, or set LATCHKEY_GENERATE_ROOT_KEY=1 to have a new one generated",
    );
  }
}
