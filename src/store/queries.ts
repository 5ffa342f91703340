import type { StoredApi } from "../domain/api.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { FiltersOf } from "../domain/fields.ts";
import type { StoredKey } from "../domain/key.ts";
import type { StoredOwner } from "../domain/owner.ts";
import type { KeyFields, Resource } from "../domain/resources.ts";
import type { StoredRootKey } from "../domain/root-key.ts";
import type { UsageCounter } from "../domain/usage.ts";
import type { KeptAnswer } from "./commands.ts";

/** Every question that can be asked. Plain data too. */
export type Query =
  /** The answer that is kept under this `lookup` of an idempotency record, unless it has expired by then. */
  | { readonly kind: "keptAnswer"; readonly lookup: string; readonly nowMs: number }
  | { readonly [Of in Resource]: { readonly kind: Of; readonly id: string } }[Resource]
  /** By any of its secrets that has not ended by then. */
  | { readonly kind: "keyOfSecret"; readonly digest: string; readonly nowMs: number }
  /** The record of the key's owner, if it concerns keys of its API. Apart from `owner`: who may read keys need not read owners. */
  | { readonly kind: "ownerOfKey"; readonly keyId: string }
  | KeysQuery
  | EventsQuery
  | PageQuery<"rootKeys">
  | PageQuery<"apis">
  | PageQuery<"owners">
  | SpendingQuery;

/**
 * A page of what there is, newest first. It examines a bounded number of rows, so that a filter that matches few of them
 * cannot hold up others: it may have fewer than `limit`, or none, and still a cursor.
 */
export interface PageQuery<Kind extends string> {
  readonly kind: Kind;
  /**
   * Only what concerns these APIs, and no others. Set where root keys are known, for one that is limited to them. Other rows
   * are not examined: neither the page nor its cursor may show that they exist.
   */
  readonly apiIds?: readonly string[] | undefined;
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
}

/** `apiId` or `ownerId` is given, or both. */
export interface KeysQuery extends PageQuery<"keys">, FiltersOf<KeyFields> {
  readonly apiId?: string | undefined;
  readonly ownerId?: string | undefined;
  /** Only keys that expire before then. */
  readonly expiresBeforeMs?: number | undefined;
  /** Only keys whose name or `start` begins with this, letter case included. */
  readonly search?: string | undefined;
}

/** By the clocks of those who made them. */
export interface EventsQuery extends PageQuery<"events"> {
  readonly targetId?: string | undefined;
  readonly actor?: string | undefined;
  readonly method?: string | undefined;
  /** Only events of then or later. */
  readonly sinceMs?: number | undefined;
  /** Only events before then. */
  readonly untilMs?: number | undefined;
}

/** What counters have spent, by their readings: see `domain/usage.ts`. */
export interface SpendingQuery {
  readonly kind: "spending";
  readonly of: "key" | "owner";
  readonly ids: readonly string[];
  /** What was spent before each of these hours is answered. At most `readingsMax` for all ids together. */
  readonly hours: readonly number[];
  /** As of a page. What was spent by an owner that had the same id before is left out then. */
  readonly apiIds?: readonly string[] | undefined;
}

export interface SpendingAnswer {
  /** By the clock of the ledger, just before. */
  readonly nowMs: number;
  /** In the order of the ids. Undefined: there is none, as far as whoever asks may know. */
  readonly counters: readonly (SpendingReadings | undefined)[];
  /** What was spent before an hour is known of every hour from the first on, and before that of every day from the second on. */
  readonly kept: { readonly firstHour: number; readonly firstDayHour: number };
}

/** All of one moment. */
export interface SpendingReadings {
  /** Undefined if the counter is gone. */
  readonly counter: UsageCounter | undefined;
  /** In all. */
  readonly spent: number;
  readonly spentBefore: readonly number[];
}

/** Most rows of a page. */
export const pageLimitMax = 100;

export interface Page<Item> {
  readonly items: readonly Item[];
  /**
   * Given if there may be more: where the next page begins. Of keys, events and root keys the id of the last one that was
   * examined. Of owners an event's id, since that of an owner may be one which whoever asks must not see.
   */
  readonly cursor?: string | undefined;
}

/** What is stored of each resource. */
export interface StoredResources {
  readonly key: StoredKey;
  readonly owner: StoredOwner;
  readonly api: StoredApi;
  readonly rootKey: StoredRootKey;
}

/** The answers, by the kind of the question. */
export type Answers = { readonly [Of in Resource]: StoredResources[Of] | undefined } & {
  readonly keptAnswer: KeptAnswer | undefined;
  readonly keyOfSecret: StoredKey | undefined;
  readonly ownerOfKey: StoredOwner | undefined;
  readonly keys: Page<StoredKey>;
  readonly events: Page<StoredEvent>;
  readonly rootKeys: Page<StoredRootKey>;
  readonly apis: Page<StoredApi>;
  readonly owners: Page<StoredOwner>;
  readonly spending: SpendingAnswer;
};
