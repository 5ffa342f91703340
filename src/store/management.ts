import type { ApiFieldChanges, KeyDefaults, StoredApi } from "../domain/api.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { KeyFieldChanges, NewKey, StoredKey } from "../domain/key.ts";
import type { NewRootKey, RootKeyFieldChanges, StoredRootKey } from "../domain/root-key.ts";
import type { KeyChange } from "./changes.ts";

/** Everything that the holder of a root key can do with stored data. Every method may throw `Unavailable`. */
export interface Management {
  /**
   * Changes something, all or nothing, and resolves after COMMIT. With an idempotency record whose `lookup` is already
   * kept, nothing is changed and the kept record is answered.
   */
  change<Made extends Command>(command: Made, idempotency?: IdempotencyRecord): Promise<Outcome<Made["kind"]>>;

  /** Sees the effect of changes that were answered before. */
  read<Asked extends Query>(query: Asked): Promise<Answers[Asked["kind"]]>;
}

/**
 * Every change that can be made. Only the stores look into it: guard, announcements and links between threads and
 * processes forward it unchanged. It is plain data, so that it can be sent to another thread or process.
 */
export type Command = KeyCommand | RootKeyCommand | ApiCommand;
export type KeyCommand = CreateKey | UpdateKey | UpdateRemaining | RerollKey | DeleteKey | ImportKeys;
export type RootKeyCommand = CreateRootKey | UpdateRootKey | RevokeRootKey;
export type ApiCommand = CreateApi | UpdateApi | StopApi | DeleteApiKeys | DeleteApi;

/** What is known of every change before it is made. */
interface Change<Kind extends string> {
  readonly kind: Kind;
  readonly event: NewEvent;
}

export interface NewEvent {
  /** Sorts by the time at which it was made. */
  readonly id: string;
  /** Becomes the time of the target's last change. */
  readonly atMs: number;
  /** The id of the root key that makes the change. Set anew where root keys are known: a caller cannot choose it. */
  readonly actor: string;
}

/**
 * Stores a key with its secret and counter, and creates its API if there is none. An API that is being deleted takes no key: a
 * conflict.
 */
export interface CreateKey extends Change<"createKey"> {
  readonly key: NewKey;
  /** If there is no such API, the outcome is `missing`. Set where the setting is known: a caller cannot choose it. */
  readonly apiMustExist?: boolean | undefined;
}

/**
 * Sets each field that is there; null removes it. An open window keeps its end and its granted permits, also while the key
 * is in the other mode: otherwise one window could grant its limit twice. A refill rule begins at the latest boundary by the
 * ledger's clock, after every refill that was due by the rule before; only a key with a counter can have one.
 */
export interface UpdateKey extends Change<"updateKey"> {
  readonly keyId: string;
  /** Only if this is the key's version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
  readonly changes: KeyFieldChanges;
}

/**
 * Changes a key's counter, after every refill that is due by the ledger's clock, and one at a time with refills and uses:
 * each use counts either before it or after it. A counter keeps its refill rule.
 */
export interface UpdateRemaining extends Change<"updateRemaining"> {
  readonly keyId: string;
  /** A key without a counter gets one by `set`. */
  readonly op: "set" | "increment" | "decrement";
  /** Undefined, with `set` only: the counter is removed, its refill rule too. */
  readonly value: number | undefined;
}

/**
 * Gives a key another secret. The one before lives on for the overlap and spends the same counter and window; a secret that
 * was replaced earlier ends with this change. So a key has two at most.
 */
export interface RerollKey extends Change<"rerollKey"> {
  readonly keyId: string;
  readonly secretDigest: string;
  readonly start: string;
  /** From the moment of the change on, in milliseconds. 0: the secret before ends with it. */
  readonly overlapMs: number;
}

/** Removes a key with its secrets, counter and window. Of several deletions of one key, one finds it. */
export interface DeleteKey extends Change<"deleteKey"> {
  readonly keyId: string;
}

/**
 * Stores keys whose secrets others have made, and creates their API if there is none. One whose digest exists, as that of a
 * key or of a secret that is being replaced, is left out; the others are stored. Each has an event of its own.
 */
export interface ImportKeys extends Change<"importKeys"> {
  readonly apiId: string;
  readonly keys: readonly ImportedKey[];
  /** As of `CreateKey`. */
  readonly apiMustExist?: boolean | undefined;
}

/** `apiId` is the command's. */
export interface ImportedKey extends NewKey {
  readonly eventId: string;
}

/** Most keys of one import. */
export const importedKeysMax = 100;

/** Stores a root key. */
export interface CreateRootKey extends Change<"createRootKey"> {
  readonly rootKey: NewRootKey;
}

export interface UpdateRootKey extends Change<"updateRootKey"> {
  readonly rootKeyId: string;
  /** Only if this is its version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
  readonly changes: RootKeyFieldChanges;
}

/** Removes a root key. Of several of one, one finds it. */
export interface RevokeRootKey extends Change<"revokeRootKey"> {
  readonly rootKeyId: string;
  readonly ifVersion?: number | undefined;
}

/** One that exists is a conflict. */
export interface CreateApi extends Change<"createApi"> {
  readonly apiId: string;
  readonly name: string | undefined;
  readonly defaults: KeyDefaults;
}

/** Sets each field that is there; null removes it. Keys that exist stay as they are. */
export interface UpdateApi extends Change<"updateApi"> {
  readonly apiId: string;
  /** Only if this is the API's version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
  readonly changes: ApiFieldChanges;
}

/** From then on the API takes no keys. Its keys stay, and verify as before. */
export interface StopApi extends Change<"stopApi"> {
  readonly apiId: string;
}

/** Deletes keys of an API that takes no more, in the order of their ids, at most `limit` of them. */
export interface DeleteApiKeys extends Change<"deleteApiKeys"> {
  readonly apiId: string;
  readonly limit: number;
}

/** Most keys that are deleted in one transaction. */
export const deletedKeysMax = 500;

/** Removes an API. If it has keys, it is a conflict. */
export interface DeleteApi extends Change<"deleteApi"> {
  readonly apiId: string;
  /** Only one that takes no keys: one that was made anew meanwhile is `missing`. */
  readonly isStopped: boolean;
}

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
  | ApisQuery;

/**
 * A page of keys, newest first. `apiId` or `ownerId` is given, or both. A page examines a bounded number of keys, so that a
 * filter that matches few of them cannot hold up others: it may have fewer keys than `limit`, or none, and still a cursor.
 */
export interface KeysQuery {
  readonly kind: "keys";
  readonly apiId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly enabled?: boolean | undefined;
  /** Only keys that expire before then. */
  readonly expiresBeforeMs?: number | undefined;
  /** Only keys whose name or `start` begins with this, letter case included. */
  readonly search?: string | undefined;
  /** Only keys of these APIs. Set where root keys are known, for one that is limited to them. */
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
export interface EventsQuery {
  readonly kind: "events";
  readonly targetId?: string | undefined;
  readonly actor?: string | undefined;
  readonly method?: string | undefined;
  /** Only events of then or later. */
  readonly sinceMs?: number | undefined;
  /** Only events before then. */
  readonly untilMs?: number | undefined;
  /** Only events that concern one of these APIs. Set where root keys are known, for one that is limited to them. */
  readonly apiIds?: readonly string[] | undefined;
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after?: string | undefined;
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

/** Most APIs of a page. */
export const pageApisMax = 100;

export interface ApiPage {
  readonly apis: readonly StoredApi[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: ApiPosition | undefined;
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
}

/** What a command that was carried out answers, by its kind. Others answer nothing. */
export interface ChangeAnswers {
  /** The balance and the key's version, as the change left them. */
  readonly updateRemaining: { readonly remaining: number | undefined; readonly version: number };
  readonly updateKey: StoredKey;
  readonly updateRootKey: StoredRootKey;
  readonly createApi: StoredApi;
  readonly updateApi: StoredApi;
  /** How many keys were deleted. Fewer than asked for: there are no more. */
  readonly deleteApiKeys: { readonly deleted: number };
  /** The ids of the keys that were stored. */
  readonly importKeys: { readonly keyIds: readonly string[] };
}

/** What became of a command of this kind; without a kind, of one that answers nothing. */
export type Outcome<Kind extends Command["kind"] = never> =
  /** `changed`: existing keys that are no longer as they were. */
  | {
      readonly outcome: "done";
      readonly changed: readonly KeyChange[];
      readonly answer?: Kind extends keyof ChangeAnswers ? ChangeAnswers[Kind] : never;
    }
  /** There is no such key or API; with `createKey`, no such API. */
  | { readonly outcome: "missing" }
  /** What is stored does not allow it. Nothing has changed. */
  | { readonly outcome: "conflict"; readonly reason: ConflictReason }
  | { readonly outcome: "repeated"; readonly record: KeptAnswer };

/**
 * The key has no counter; the counter would fall below 0, or rise above its bound; the key or API has another version; the API
 * exists already, is being deleted, or has keys.
 */
export type ConflictReason =
  | "noCounter"
  | "belowZero"
  | "aboveMax"
  | "version"
  | "apiExists"
  | "apiIsDeleting"
  | "hasKeys";

/** An answer kept so that a repeated request gets it again. Nothing in it can be read without the caller's secrets. */
export interface IdempotencyRecord {
  readonly lookup: string;
  /** What was made or changed, such as a key's id. Not a secret. */
  readonly targetId: string;
  readonly requestDigest: string;
  readonly sealedAnswer: string;
  readonly createdAtMs: number;
  /** From then on the record counts as gone. */
  readonly expiresAtMs: number;
}

export type KeptAnswer = Pick<IdempotencyRecord, "targetId" | "requestDigest" | "sealedAnswer">;

/** What a command is about, such as a key, a new one included. */
export function targetIdOf(command: Command): string {
  switch (command.kind) {
    case "createKey":
      return command.key.id;
    // Of several keys the first.
    case "importKeys":
      return command.keys[0]?.id ?? "";
    case "createRootKey":
      return command.rootKey.id;
    case "updateRootKey":
    case "revokeRootKey":
      return command.rootKeyId;
    default:
      return "apiId" in command ? command.apiId : command.keyId;
  }
}
