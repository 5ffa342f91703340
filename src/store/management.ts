import type { NewKey, StoredKey } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { KeyChange } from "./key-changes.ts";

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
    }
  | UpdateRemaining;

/**
 * Changes a key's counter, after every refill that is due by the ledger's clock, and one at a time with refills and uses:
 * each use counts either before it or after it. A counter keeps its refill rule.
 */
export interface UpdateRemaining {
  readonly kind: "updateRemaining";
  readonly keyId: string;
  /** A key without a counter gets one by `set`. */
  readonly op: "set" | "increment" | "decrement";
  /** Undefined, with `set` only: the counter is removed, its refill rule too. */
  readonly value: number | undefined;
  /** Becomes the time of the key's last change. */
  readonly atMs: number;
}

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

/** What a command that was carried out answers, by its kind. Others answer nothing. */
export interface ChangeAnswers {
  /** The balance and the key's version, as the change left them. */
  readonly updateRemaining: { readonly remaining: number | undefined; readonly version: number };
}

/** What became of a command of this kind; without a kind, of one that answers nothing. */
export type Outcome<Kind extends Command["kind"] = never> =
  /** `changed`: existing keys that are no longer as they were. */
  | {
      readonly outcome: "done";
      readonly changed: readonly KeyChange[];
      readonly answer?: Kind extends keyof ChangeAnswers ? ChangeAnswers[Kind] : never;
    }
  /** There is no such key. */
  | { readonly outcome: "missing" }
  /** The key is in a state that does not allow it. Nothing has changed. */
  | { readonly outcome: "conflict"; readonly reason: ConflictReason }
  | { readonly outcome: "repeated"; readonly record: KeptAnswer };

/** The key has no counter; the counter would fall below 0, or rise above its bound. */
export type ConflictReason = "noCounter" | "belowZero" | "aboveMax";

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
