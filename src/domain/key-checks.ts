import type { Costs } from "./costs.ts";
import { isExpired } from "./expiry.ts";
import { type IpAddress, includesAddress } from "./ip-allow.ts";
import type { Key } from "./key.ts";
import type { Owner } from "./owner.ts";
import { isGranted, missingFrom, type PermissionQuery } from "./permission-query.ts";
import type { KeyCheck, RefusalReason } from "./refusal-reason.ts";

/** What a verification is asked with. */
export interface PlannedRequest {
  /** The API that asks; undefined: it is not checked. */
  readonly apiId: string | undefined;
  /**
   * The APIs that the caller's root key is limited to. Keys of others do not exist for it. Absent: all, or the caller needs
   * no root key.
   */
  readonly apiIds?: readonly string[] | undefined;
  /** What the key must be allowed to do; absent: it is not checked. */
  readonly permissions?: PermissionQuery | undefined;
  /** The address of the end user, if the caller sends it. */
  readonly ip?: IpAddress | undefined;
  /** What is taken from limits and counters; absent: 1 from each. */
  readonly costs?: Costs | undefined;
}

/**
 * The first reason to refuse the key, in the order of the contract. Every verification runs this, so it stops at the first
 * and makes no list.
 */
export function firstRefusal(
  key: Key,
  owner: Owner | undefined,
  request: PlannedRequest,
  nowMs: number,
): RefusalReason | undefined {
  return (
    apiRefusal(key, request) ??
    enabledRefusal(key) ??
    expiryRefusal(key, nowMs) ??
    ownerRefusal(owner) ??
    ipRefusal(key, request) ??
    permissionsRefusal(key, request)
  );
}

/** What each of these checks finds, in the same order. */
export function checkKey(
  key: Key,
  owner: Owner | undefined,
  request: PlannedRequest,
  nowMs: number,
): readonly KeyCheck[] {
  const ofOwner: KeyCheck = { check: "enabled", of: "owner", isNeeded: true, refusal: ownerRefusal(owner) };
  return [
    { check: "api", isNeeded: request.apiId !== undefined, refusal: apiRefusal(key, request) },
    { check: "enabled", of: "key", isNeeded: true, refusal: enabledRefusal(key) },
    { check: "expiry", isNeeded: key.expiresAtMs !== undefined, refusal: expiryRefusal(key, nowMs) },
    ...(owner === undefined ? [] : [ofOwner]),
    { check: "ip", isNeeded: key.ipAllow !== undefined, refusal: ipRefusal(key, request) },
    {
      check: "permissions",
      isNeeded: request.permissions !== undefined,
      refusal: permissionsRefusal(key, request),
    },
  ];
}

function apiRefusal(key: Key, { apiId }: PlannedRequest): RefusalReason | undefined {
  return apiId === undefined || apiId === key.apiId ? undefined : { check: "api" };
}

function enabledRefusal({ enabled }: Key): RefusalReason | undefined {
  return enabled ? undefined : { check: "enabled", of: "key" };
}

function ownerRefusal(owner: Owner | undefined): RefusalReason | undefined {
  return owner?.enabled === false ? { check: "enabled", of: "owner" } : undefined;
}

function expiryRefusal({ expiresAtMs }: Key, nowMs: number): RefusalReason | undefined {
  return isExpired(expiresAtMs, nowMs) ? { check: "expiry" } : undefined;
}

/** A key that is limited to addresses is refused to a caller that sends none. */
function ipRefusal({ ipAllow }: Key, { ip }: PlannedRequest): RefusalReason | undefined {
  if (ipAllow === undefined || (ip !== undefined && includesAddress(ipAllow, ip))) return undefined;
  return { check: "ip", isGiven: ip !== undefined };
}

function permissionsRefusal({ permissions = none }: Key, request: PlannedRequest): RefusalReason | undefined {
  const { permissions: query } = request;
  if (query === undefined || isGranted(query, permissions)) return undefined;
  return { check: "permissions", missing: missingFrom(query, permissions) };
}

const none: readonly string[] = [];
