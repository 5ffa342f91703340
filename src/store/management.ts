import type { NewKey, StoredKey } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { KeyChange } from "./key-changes.ts";

/** Everything that the holder of a root key can do with stored data. Every method may throw `Unavailable`. */
export interface Management {
  /**
   * Changes something, all or nothing, and resolves after COMMIT. With an idempotency record whose `lookup` is already
   * kept, nothing is changed and the kept record is answered.
   */
  change(command: Command, idempotency?: IdempotencyRecord): Promise<Outcome>;

  /** Sees the effect of changes that were answered before. */
  read<Asked extends Query>(query: Asked): Promise<Answers[Asked["kind"]]>;
}

/**
 * Every change that can be made. Only the stores look into it: guard, announcements and links between threads and
 * processes forward it unchanged. It is plain data, so that it can be sent to another thread or process.
 */
export type Command =
  /** Stores a key with its secret and counter, and registers its API. */
  | { readonly kind: "createKey"; readonly key: NewKey }
  /** Removes a key with its secrets, counter and window. Of several deletions of one key, one finds it. */
  | { readonly kind: "deleteKey"; readonly keyId: string }
  /**
   * Gives a key another rate limit, or none. An open window keeps its end and its granted permits, also while the key is
   * in the other mode: otherwise one window could grant its limit twice.
   */
  | {
      readonly kind: "setRateLimit";
      readonly keyId: string;
      readonly rateLimit: RateLimit | undefined;
      readonly atMs: number;
    };

/** Every question that can be asked. Plain data too. */
export type Query =
  /** The answer that is kept under this `lookup` of an idempotency record, unless it has expired by then. */
  | { readonly kind: "keptAnswer"; readonly lookup: string; readonly nowMs: number }
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "keyOfSecret"; readonly digest: string };

/** The answers, by the kind of the question. */
export interface Answers {
  readonly keptAnswer: KeptAnswer | undefined;
  readonly key: StoredKey | undefined;
  readonly keyOfSecret: StoredKey | undefined;
}

/** What became of a command. */
export type Outcome =
  /** `changed`: existing keys that are no longer as they were. */
  | { readonly outcome: "done"; readonly changed: readonly KeyChange[] }
  /** There is no such key. */
  | { readonly outcome: "missing" }
  | { readonly outcome: "repeated"; readonly record: KeptAnswer };

/** An answer kept so that a repeated request gets it again. Nothing in it can be read without the caller's secrets. */
export interface IdempotencyRecord {
  readonly lookup: string;
  readonly requestDigest: string;
  readonly sealedAnswer: string;
  readonly createdAtMs: number;
  /** From then on the record counts as gone. */
  readonly expiresAtMs: number;
}

export type KeptAnswer = Pick<IdempotencyRecord, "requestDigest" | "sealedAnswer">;

/** The key that a command is about, a new one included. */
export function keyIdOf(command: Command): string {
  return command.kind === "createKey" ? command.key.id : command.keyId;
}
