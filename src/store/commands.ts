import type { ApiFieldChanges, KeyDefaults } from "../domain/api.ts";
import type { KeyFieldChanges, NewKey } from "../domain/key.ts";
import type { NewOwner, OwnerFieldChanges } from "../domain/owner.ts";
import type { NewRootKey, RootKeyFieldChanges } from "../domain/root-key.ts";

/**
 * Every change that can be made. Only the stores look into it: guard, announcements and links between threads and
 * processes forward it unchanged. It is plain data, so that it can be sent to another thread or process.
 */
export type Command = KeyCommand | RootKeyCommand | ApiCommand | OwnerCommand;

export type KeyCommand = CreateKey | UpdateKey | UpdateRemaining | RerollKey | DeleteKey | ImportKeys;

export type RootKeyCommand = CreateRootKey | UpdateRootKey | RevokeRootKey;

export type ApiCommand = CreateApi | UpdateApi | StopApi | DeleteApiKeys | DeleteApi;

export type OwnerCommand = CreateOwner | UpdateOwner | UpdateOwnerRemaining | StopOwner | DeleteOwner;

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
export interface UpdateRemaining extends Change<"updateRemaining">, CounterChange {
  readonly keyId: string;
}

export interface CounterChange {
  /** A key or owner without a counter gets one by `set`. */
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
  /** Only if this is the key's version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
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

/** Stores the record of an owner with its counter. One that exists is a conflict. Keys can have named the owner before. */
export interface CreateOwner extends Change<"createOwner"> {
  readonly owner: NewOwner;
}

/**
 * Sets each field that is there; null removes it. Open windows and refill rules are treated as those of a key: see
 * `UpdateKey`.
 */
export interface UpdateOwner extends Change<"updateOwner"> {
  readonly ownerId: string;
  /** Only if this is the owner's version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
  readonly changes: OwnerFieldChanges;
}

/** Changes an owner's counter as `UpdateRemaining` does a key's. */
export interface UpdateOwnerRemaining extends Change<"updateOwnerRemaining">, CounterChange {
  readonly ownerId: string;
  readonly ifVersion?: number | undefined;
}

/** Disables an owner that is being deleted: from then on none of its keys can be used. */
export interface StopOwner extends Change<"stopOwner"> {
  readonly ownerId: string;
  readonly ifVersion?: number | undefined;
}

/** Removes the record of an owner with its counter and windows. Its keys stay, and share nothing any more. */
export interface DeleteOwner extends Change<"deleteOwner"> {
  readonly ownerId: string;
  readonly ifVersion?: number | undefined;
  /** If there are such keys, it is a conflict that says how many. */
  readonly unless?: KeysOfOwner | undefined;
}

/** Keys that name an owner. */
export interface KeysOfOwner {
  /** Only of these APIs. Undefined: of all. */
  readonly apiIds?: readonly string[] | undefined;
  /** Only those that are enabled. */
  readonly enabled?: boolean | undefined;
}

/** Keys of an owner are counted up to here: more are one more than this. */
export const countedKeysMax = 10_000;

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
    case "createOwner":
      return command.owner.id;
    case "updateOwner":
    case "updateOwnerRemaining":
    case "stopOwner":
    case "deleteOwner":
      return command.ownerId;
    default:
      return "apiId" in command ? command.apiId : command.keyId;
  }
}

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
