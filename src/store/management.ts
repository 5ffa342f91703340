import type { KeyChange } from "./changes.ts";
import type { Command, IdempotencyRecord, KeptAnswer } from "./commands.ts";
import type { Answers, Query, StoredResources } from "./queries.ts";

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

/** What a command that was carried out answers, by its kind. Others answer nothing. */
export interface ChangeAnswers {
  readonly updateKey: StoredResources["key"];
  /** The balance, and the version of the key or owner, as the change left them. */
  readonly updateRemaining: ChangedBalance;
  readonly updateOwnerRemaining: ChangedBalance;
  readonly createOwner: StoredResources["owner"];
  readonly updateOwner: StoredResources["owner"];
  readonly stopOwner: StoredResources["owner"];
  readonly createApi: StoredResources["api"];
  readonly updateApi: StoredResources["api"];
  readonly updateRootKey: StoredResources["rootKey"];
  readonly deleteApiKeys: EndedPiece;
  readonly endOwnerKeys: EndedPiece;
  /** The ids of the keys that were stored. */
  readonly importKeys: { readonly keyIds: readonly string[] };
}

interface EndedPiece {
  /** Behind the keys that were examined. Undefined: there were fewer than the limit, so no more are left. */
  readonly cursor: string | undefined;
}

interface ChangedBalance {
  readonly remaining: number | undefined;
  readonly version: number;
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
  | {
      readonly outcome: "conflict";
      readonly reason: ConflictReason;
      /** With `ownerHasKeys`: how many, up to `countedKeysMax` and one. */
      readonly keys?: number;
    }
  | { readonly outcome: "repeated"; readonly record: KeptAnswer };

/**
 * The key or owner has no counter; the counter would fall below 0, or rise above its bound; the key, owner or API has another
 * version; the owner exists already, or has keys; the API exists already, is being deleted, or has keys.
 */
export type ConflictReason =
  | "noCounter"
  | "belowZero"
  | "aboveMax"
  | "version"
  | "ownerExists"
  | "ownerHasKeys"
  | "apiExists"
  | "apiIsDeleting"
  | "hasKeys";

/** A key does not create its API: an unknown one is `missing`. */
export function requireApis(management: Management): Management {
  return {
    read: (query) => management.read(query),
    change: (command, idempotency) =>
      management.change(
        command.kind === "createKey" || command.kind === "importKeys" ? { ...command, apiMustExist: true } : command,
        idempotency,
      ),
  };
}
