import type { KeyDefaults, StoredApi } from "../domain/api.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { StoredKey } from "../domain/key.ts";
import type { StoredOwner } from "../domain/owner.ts";
import type { StoredRootKey } from "../domain/root-key.ts";
import type { KeptAnswer } from "./commands.ts";

/** Every question that can be asked. Plain data too. */
export type Query =
  /** The answer that is kept under this `lookup` of an idempotency record, unless it has expired by then. */
  | { readonly kind: "keptAnswer"; readonly lookup: string; readonly nowMs: number }
  | { readonly kind: "key"; readonly keyId: string }
  /** By any of its secrets that has not ended by then. */
  | { readonly kind: "keyOfSecret"; readonly digest: string; readonly nowMs: number }
  | KeysQuery
  | EventsQuery
  | { readonly kind: "rootKey"; readonly rootKeyId: string }
  | RootKeysQuery
  | { readonly kind: "api"; readonly apiId: string }
  /** What a new key of the API takes over. Apart from `api`: who may create keys need not be allowed to read APIs. */
  | { readonly kind: "apiDefaults"; readonly apiId: string }
  | ApisQuery
  | { readonly kind: "owner"; readonly ownerId: string }
  /** The record of the key's owner, if it concerns keys of its API. Apart from `owner`: who may read keys need not read owners. */
  | { readonly kind: "ownerOfKey"; readonly keyId: string }
  | OwnersQuery;

/**
 * A page of keys, newest first. `apiId` or `ownerId` is given, or both. A page examines a bounded number of keys, so that a
 * filter that matches few of them cannot hold up others: it may have fewer keys than `limit`, or none, and still a cursor.
 */
export interface KeysQuery extends PageQuery {
  readonly kind: "keys";
  readonly apiId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly enabled?: boolean | undefined;
  /** Only keys that expire before then. */
  readonly expiresBeforeMs?: number | undefined;
  /** Only keys whose name or `start` begins with this, letter case included. */
  readonly search?: string | undefined;
}

/** What pages of keys and of events are asked for with. */
interface PageQuery {
  /**
   * Only rows of these APIs. Set where root keys are known, for one that is limited to them. Rows of others are not examined:
   * neither the page nor its cursor may tell of them.
   */
  readonly apiIds?: readonly string[] | undefined;
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

/** Most keys or events of a page. */
export const pageLimitMax = 100;

export interface KeyPage {
  readonly keys: readonly StoredKey[];
  /** Given if there may be more keys: the id of the last key that was examined. */
  readonly cursor?: string;
}

/** A page of events, newest first by the clocks of those who made them. It examines a bounded number of events, as a page of keys. */
export interface EventsQuery extends PageQuery {
  readonly kind: "events";
  readonly targetId?: string | undefined;
  readonly actor?: string | undefined;
  readonly method?: string | undefined;
  /** Only events of then or later. */
  readonly sinceMs?: number | undefined;
  /** Only events before then. */
  readonly untilMs?: number | undefined;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Given if there may be more events: the id of the last event that was examined. */
  readonly cursor?: string;
}

/** A page of root keys, newest first. */
export interface RootKeysQuery {
  readonly kind: "rootKeys";
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

export interface RootKeyPage {
  readonly rootKeys: readonly StoredRootKey[];
  /** Given if there are more: the id of the last one of the page. */
  readonly cursor?: string;
}

/** A page of APIs, newest first. */
export interface ApisQuery {
  readonly kind: "apis";
  readonly limit: number;
  /** Where the page before has ended. */
  readonly after?: ApiPosition | undefined;
  /** Only these APIs. Absent: all. */
  readonly within?: readonly string[] | undefined;
}

/** The place of an API in the list. */
export interface ApiPosition {
  readonly createdAtMs: number;
  readonly apiId: string;
}

export interface ApiPage {
  readonly apis: readonly StoredApi[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: ApiPosition | undefined;
}

/**
 * A page of owners, newest first. It examines a bounded number of them, and may have a cursor although it is not full, or has
 * none at all, as a page of keys.
 */
export interface OwnersQuery {
  readonly kind: "owners";
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
  /** Only owners that concern keys of these APIs alone. Absent: all. Set where root keys are known. */
  readonly within?: readonly string[] | undefined;
}

export interface OwnerPage {
  readonly owners: readonly StoredOwner[];
  /**
   * Where the next page begins; absent on the last one. An event's id: that of an owner may be one which whoever asks must
   * not see.
   */
  readonly cursor?: string | undefined;
}

/** The answers, by the kind of the question. */
export interface Answers {
  readonly keptAnswer: KeptAnswer | undefined;
  readonly key: StoredKey | undefined;
  readonly keyOfSecret: StoredKey | undefined;
  readonly keys: KeyPage;
  readonly events: EventPage;
  readonly rootKey: StoredRootKey | undefined;
  readonly rootKeys: RootKeyPage;
  readonly api: StoredApi | undefined;
  readonly apiDefaults: KeyDefaults | undefined;
  readonly apis: ApiPage;
  readonly owner: StoredOwner | undefined;
  readonly ownerOfKey: StoredOwner | undefined;
  readonly owners: OwnerPage;
}
