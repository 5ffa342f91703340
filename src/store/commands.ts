import type { NewApi } from "../domain/api.ts";
import type { ChangesOf, Fields } from "../domain/fields.ts";
import type { NewKey } from "../domain/key.ts";
import type { NewOwner } from "../domain/owner.ts";
import { type Resource, resources } from "../domain/resources.ts";
import type { NewRootKey } from "../domain/root-key.ts";

/**
 * Every change that can be made, as plain data. Only the stores look into it: guard, deferred store and announcements forward
 * it unchanged.
 */
export type Command =
  | CreateKey
  | UpdateKey
  | UpdateRemaining
  | RerollKey
  | DeleteKey
  | ImportKeys
  | CreateOwner
  | UpdateOwner
  | UpdateOwnerRemaining
  | StopOwner
  | EndOwnerKeys
  | DeleteOwner
  | CreateApi
  | UpdateApi
  | StopApi
  | DeleteApiKeys
  | DeleteApi
  | CreateRootKey
  | UpdateRootKey
  | RevokeRootKey;

/** What each command is about, and the method that makes it, as it is called in JSON. */
const about = {
  createKey: ["key", "keys.createKey"],
  updateKey: ["key", "keys.updateKey"],
  updateRemaining: ["key", "keys.updateRemaining"],
  rerollKey: ["key", "keys.rerollKey"],
  deleteKey: ["key", "keys.deleteKey"],
  importKeys: ["key", "keys.importKeys"],
  createOwner: ["owner", "owners.createOwner"],
  updateOwner: ["owner", "owners.updateOwner"],
  updateOwnerRemaining: ["owner", "owners.updateRemaining"],
  // The deletion of an owner, or of an API, with its keys is one call.
  stopOwner: ["owner", "owners.deleteOwner"],
  endOwnerKeys: ["owner", "owners.deleteOwner"],
  deleteOwner: ["owner", "owners.deleteOwner"],
  createApi: ["api", "apis.createApi"],
  updateApi: ["api", "apis.updateApi"],
  stopApi: ["api", "apis.deleteApi"],
  deleteApiKeys: ["api", "apis.deleteApi"],
  deleteApi: ["api", "apis.deleteApi"],
  createRootKey: ["rootKey", "rootKeys.createRootKey"],
  updateRootKey: ["rootKey", "rootKeys.updateRootKey"],
  revokeRootKey: ["rootKey", "rootKeys.revokeRootKey"],
} as const satisfies { readonly [Kind in Command["kind"]]: readonly [Resource, string] };

export function resourceOf({ kind }: Pick<Command, "kind">): Resource {
  return about[kind][0];
}

export function methodOf({ kind }: Pick<Command, "kind">): string {
  return about[kind][1];
}

/** The names of the fields that it changes, as callers know them, for its event; never their values. */
export function fieldsOf(command: Command): readonly string[] {
  if ("changes" in command) {
    const fields: Fields = resources[resourceOf(command)];
    const changed = Object.entries(command.changes).filter(([, value]) => value !== undefined);
    return changed.map(([name]) => fields[name]?.publicName ?? name);
  }
  if ("op" in command) return ["remaining"];
  if (isDisabling(command)) return ["enabled"];
  return command.kind === "rerollKey" ? ["secrets"] : [];
}

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
  /** The id of the root key that makes the change. Set again where root keys are known: a caller cannot choose it. */
  readonly actor: string;
}

/** A change that makes something. */
interface Creation<Kind extends string, New> extends Change<Kind> {
  readonly created: New;
}

/** A change of something that is there. */
interface ChangeOf<Kind extends string> extends Change<Kind> {
  readonly id: string;
}

interface VersionedChange<Kind extends string> extends ChangeOf<Kind> {
  /** Only if this is its version; any other is a conflict. */
  readonly ifVersion?: number | undefined;
}

/** Sets each field that is there; null removes it. */
interface Update<Kind extends string, Of extends Resource> extends VersionedChange<Kind> {
  readonly changes: ChangesOf<(typeof resources)[Of]>;
}

/**
 * Stores a key with its secret and counter, and creates its API if there is none. An API that is being deleted takes no key: a
 * conflict.
 */
export interface CreateKey extends Creation<"createKey", NewKey> {
  /** If there is no such API, the outcome is `missing`. Set where the setting is known: a caller cannot choose it. */
  readonly apiMustExist?: boolean | undefined;
}

/**
 * An open window keeps its end and its granted permits, also while the key is in the other mode: otherwise one window could
 * grant its limit twice. A refill rule begins at the latest boundary by the ledger's clock, after every refill that was due by
 * the rule before; only a key with a counter can have one. The same for an owner.
 */
export interface UpdateKey extends Update<"updateKey", "key"> {}
export interface UpdateOwner extends Update<"updateOwner", "owner"> {}

/**
 * Changes the counter of a key or an owner, after every refill that is due by the ledger's clock, and one at a time with
 * refills and uses: each use counts either before it or after it. A counter keeps its refill rule.
 */
export interface UpdateRemaining extends VersionedChange<"updateRemaining">, CounterChange {}
export interface UpdateOwnerRemaining extends VersionedChange<"updateOwnerRemaining">, CounterChange {}

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
export interface RerollKey extends ChangeOf<"rerollKey"> {
  readonly secretDigest: string;
  readonly start: string;
  /** From the moment of the change on, in milliseconds. 0: the secret before ends with it. */
  readonly overlapMs: number;
}

/** Removes a key with its secrets, counter and window. Of several deletions of one key, one finds it. */
export interface DeleteKey extends VersionedChange<"deleteKey"> {}

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

export interface CreateRootKey extends Creation<"createRootKey", NewRootKey> {}
export interface UpdateRootKey extends Update<"updateRootKey", "rootKey"> {}

/** Removes a root key. Of several of one, one finds it. */
export interface RevokeRootKey extends VersionedChange<"revokeRootKey"> {}

/** One that exists is a conflict. */
export interface CreateApi extends Creation<"createApi", NewApi> {}

/** Keys that exist stay as they are. */
export interface UpdateApi extends Update<"updateApi", "api"> {}

/** From then on the API takes no keys. Its keys stay, and verify as before. */
export interface StopApi extends ChangeOf<"stopApi"> {}

/**
 * Ends a piece of the keys of an API or owner: `limit` keys in the order of their ids are examined. Each key that changes has
 * an event of its own. Several pieces of the same keys take turns.
 */
interface EndKeys<Kind extends string> extends VersionedChange<Kind> {
  readonly limit: number;
  /** The cursor that the piece before has answered. Undefined: from the first key on. */
  readonly after?: string | undefined;
}

/** Deletes keys of an API that takes no more. Any other API is `missing`. */
export interface DeleteApiKeys extends EndKeys<"deleteApiKeys"> {}

/** Disables or deletes keys that name an owner, which is disabled. */
export interface EndOwnerKeys extends EndKeys<"endOwnerKeys"> {
  /** `createdAtMs` of the owner: another one with its id, made since, is `missing`. */
  readonly madeAtMs: number;
  /** Only keys of this API. Undefined: of all. */
  readonly apiId: string | undefined;
  readonly how: "disable" | "delete";
}

/** Keys that are disabled already are left as they are. */
export function isDisabling(command: Command): boolean {
  return command.kind === "endOwnerKeys" && command.how === "disable";
}

/** Most keys that one transaction examines to end them. */
export const endedKeysMax = 500;

/** Removes an API. If it has keys, it is a conflict. */
export interface DeleteApi extends ChangeOf<"deleteApi"> {
  /** Only one that takes no keys: one that was made again meanwhile is `missing`. */
  readonly isStopped: boolean;
}

/** Stores the record of an owner with its counter. One that exists is a conflict. Keys can have named the owner before. */
export interface CreateOwner extends Creation<"createOwner", NewOwner> {}

/** Disables an owner that is being deleted: from then on none of its keys can be used. */
export interface StopOwner extends VersionedChange<"stopOwner"> {}

/** Removes the record of an owner with its counter and windows. Its keys stay, and share nothing any more. */
export interface DeleteOwner extends VersionedChange<"deleteOwner"> {
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

/** What a command is about, a new key included; of several keys the first. */
export function targetIdOf(command: Command): string {
  if ("id" in command) return command.id;
  return "created" in command ? command.created.id : (command.keys[0]?.id ?? "");
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
