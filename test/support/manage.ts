import type { NewApi } from "../../src/domain/api.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { ChangesOf } from "../../src/domain/fields.ts";
import type { NewKey, StoredKey } from "../../src/domain/key.ts";
import type { NewOwner, StoredOwner } from "../../src/domain/owner.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { ApiFields, OwnerFields } from "../../src/domain/resources.ts";
import type {
  EndOwnerKeys,
  IdempotencyRecord,
  ImportedKey,
  KeptAnswer,
  KeysOfOwner,
  NewEvent,
  RerollKey,
  UpdateRemaining,
} from "../../src/store/commands.ts";
import type { Management, Outcome } from "../../src/store/management.ts";
import { type EventsQuery, type KeysQuery, type Page, pageLimitMax } from "../../src/store/queries.ts";

/* Commands and queries as calls. */

type Changes = Pick<Management, "change">;

let events = 0;

/** Each has an id of its own. */
export function testEvent(atMs = 1): NewEvent {
  return { id: `evt_${String(++events).padStart(8, "0")}`, atMs, actor: "root_test" };
}

export const done: Outcome = { outcome: "done", changed: [] };

export function createKey(management: Changes, key: NewKey, record?: IdempotencyRecord): Promise<Outcome> {
  return management.change({ kind: "createKey", created: key, event: testEvent(key.createdAtMs) }, record);
}

/** A few at a time: a store that many wait for turns some of them away. */
export async function createKeys(management: Changes, keys: readonly NewKey[]): Promise<void> {
  for (let from = 0; from < keys.length; from += 20) {
    await Promise.all(keys.slice(from, from + 20).map((key) => createKey(management, key)));
  }
}

/** The digests of the secrets that the key had; undefined if there is no such key. */
export async function deleteKey(management: Changes, keyId: string): Promise<readonly string[] | undefined> {
  return digestsOf(await management.change({ kind: "deleteKey", id: keyId, event: testEvent() }));
}

/** As `deleteKey`. */
export async function setRateLimit(
  management: Changes,
  keyId: string,
  rateLimit: RateLimit | undefined,
  atMs = 1,
): Promise<readonly string[] | undefined> {
  const changes = { rateLimit: rateLimit ?? null };
  return digestsOf(await management.change({ kind: "updateKey", id: keyId, changes, event: testEvent(atMs) }));
}

export function createApi(
  management: Changes,
  apiId: string,
  given: Partial<NewApi> & { readonly atMs?: number; record?: IdempotencyRecord } = {},
): Promise<Outcome<"createApi">> {
  const { atMs = 1, record, ...properties } = given;
  const created = { name: undefined, defaults: {}, ownersRequired: false, ...properties, id: apiId };
  return management.change({ kind: "createApi", created, event: testEvent(atMs) }, record);
}

export function updateApi(
  management: Changes,
  apiId: string,
  changes: ChangesOf<ApiFields>,
  { ifVersion, atMs = 1 }: { readonly ifVersion?: number; readonly atMs?: number } = {},
): Promise<Outcome<"updateApi">> {
  return management.change({ kind: "updateApi", id: apiId, ifVersion, changes, event: testEvent(atMs) });
}

export function stopApi(management: Changes, apiId: string, record?: IdempotencyRecord): Promise<Outcome<"stopApi">> {
  return management.change({ kind: "stopApi", id: apiId, event: testEvent() }, record);
}

export function deleteApiKeys(
  management: Changes,
  apiId: string,
  limit: number,
  after?: string,
): Promise<Outcome<"deleteApiKeys">> {
  return management.change({ kind: "deleteApiKeys", id: apiId, limit, after, event: testEvent() });
}

/** Of an owner that `createOwner` has made without a time. */
export function endOwnerKeys(
  management: Changes,
  ownerId: string,
  given: Pick<EndOwnerKeys, "how"> & Partial<EndOwnerKeys>,
): Promise<Outcome<"endOwnerKeys">> {
  const event = testEvent();
  const defaults = { madeAtMs: 1, apiId: undefined, limit: 500, event };
  return management.change({ ...defaults, ...given, kind: "endOwnerKeys", id: ownerId });
}

export function deleteApi(management: Changes, apiId: string, isStopped = false): Promise<Outcome<"deleteApi">> {
  return management.change({ kind: "deleteApi", id: apiId, isStopped, event: testEvent() });
}

/** `atMs` matters only to what shows the time of the last change. */
export function updateRemaining(
  management: Changes,
  keyId: string,
  op: UpdateRemaining["op"],
  value: number | undefined,
  atMs = 1,
): Promise<Outcome<"updateRemaining">> {
  return management.change({ kind: "updateRemaining", id: keyId, op, value, event: testEvent(atMs) });
}

export function createOwner(
  management: Changes,
  owner: NewOwner,
  { atMs = 1, record }: { readonly atMs?: number; readonly record?: IdempotencyRecord } = {},
): Promise<Outcome<"createOwner">> {
  return management.change({ kind: "createOwner", created: owner, event: testEvent(atMs) }, record);
}

export function updateOwner(
  management: Changes,
  ownerId: string,
  changes: ChangesOf<OwnerFields>,
  { ifVersion, atMs = 1 }: { readonly ifVersion?: number; readonly atMs?: number } = {},
): Promise<Outcome<"updateOwner">> {
  return management.change({ kind: "updateOwner", id: ownerId, ifVersion, changes, event: testEvent(atMs) });
}

export function updateOwnerRemaining(
  management: Changes,
  ownerId: string,
  op: UpdateRemaining["op"],
  value: number | undefined,
  { ifVersion, atMs = 1 }: { readonly ifVersion?: number; readonly atMs?: number } = {},
): Promise<Outcome<"updateOwnerRemaining">> {
  return management.change({ kind: "updateOwnerRemaining", id: ownerId, op, value, ifVersion, event: testEvent(atMs) });
}

export function deleteOwner(
  management: Changes,
  ownerId: string,
  ifVersion?: number,
  unless?: KeysOfOwner,
): Promise<Outcome<"deleteOwner">> {
  return management.change({ kind: "deleteOwner", id: ownerId, ifVersion, unless, event: testEvent() });
}

export function importKeys(
  management: Changes,
  keys: readonly ImportedKey[],
  record?: IdempotencyRecord,
): Promise<Outcome<"importKeys">> {
  const apiId = keys[0]?.apiId ?? "api_1";
  return management.change({ kind: "importKeys", apiId, keys, event: testEvent() }, record);
}

export function rerollKey(
  management: Changes,
  keyId: string,
  given: Partial<Omit<RerollKey, "kind" | "id">> & { readonly secretDigest: string },
  record?: IdempotencyRecord,
): Promise<Outcome> {
  const defaults = { start: "live_wxyz", overlapMs: 0, event: testEvent() };
  return management.change({ kind: "rerollKey", id: keyId, ...defaults, ...given }, record);
}

export function findKeptAnswer(
  management: Pick<Management, "read">,
  lookup: string,
  nowMs: number,
): Promise<KeptAnswer | undefined> {
  return management.read({ kind: "keptAnswer", lookup, nowMs });
}

interface Paging {
  readonly limit?: number;
  /** Called before each page but the first. */
  readonly between?: () => Promise<unknown>;
}

/** All pages, one after the other. */
async function pagesOf<Item>(
  read: (limit: number, after: string | undefined) => Promise<Page<Item>>,
  { limit = pageLimitMax, between = async () => {} }: Paging,
): Promise<readonly Page<Item>[]> {
  const pages: Page<Item>[] = [];
  for (let after: string | undefined; pages.length === 0 || after !== undefined; after = pages.at(-1)?.cursor) {
    if (pages.length > 0) await between();
    pages.push(await read(limit, after));
    if (pages.length > 100_000) throw new Error("the list has no end");
  }
  return pages;
}

export function listPages(
  management: Pick<Management, "read">,
  query: Omit<KeysQuery, "kind" | "limit" | "after">,
  paging: Paging = {},
): Promise<readonly Page<StoredKey>[]> {
  return pagesOf((limit, after) => management.read({ kind: "keys", ...query, limit, after }), paging);
}

export function listOwnerPages(
  management: Pick<Management, "read">,
  apiIds: readonly string[] | undefined,
  paging: Paging = {},
): Promise<readonly Page<StoredOwner>[]> {
  return pagesOf((limit, after) => management.read({ kind: "owners", apiIds, limit, after }), paging);
}

export function listEventPages(
  management: Pick<Management, "read">,
  query: Omit<EventsQuery, "kind" | "limit" | "after">,
  paging: Paging = {},
): Promise<readonly Page<StoredEvent>[]> {
  return pagesOf((limit, after) => management.read({ kind: "events", ...query, limit, after }), paging);
}

function digestsOf(outcome: Outcome<"updateKey">): readonly string[] | undefined {
  return outcome.outcome === "done" ? outcome.changed[0]?.digests : undefined;
}
