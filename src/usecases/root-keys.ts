import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import { formatKey, isWellFormedKey } from "../domain/key-format.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { type Allowance, RootKeyRetired, type RootKeyVerdict, unlimitedRootKey } from "../domain/root-key.ts";
import { Secret } from "../domain/secret.ts";
import type { Management } from "../store/management.ts";
import { generatedRootKeyId, type RootKeyStore } from "../store/root-key-store.ts";
import { createWithSecret } from "./create-with-secret.ts";
import type { IdempotencyKey } from "./idempotency.ts";
import type { EventDeps } from "./new-event.ts";

/** Begins every root key that is stored. */
const rootKeyPrefix = "lk_root";
const rootKeyBytes = 32;

/** What every root key from the settings allows. */
const configured = unlimitedRootKey("configured");

/**
 * The root keys from the settings, which are never stored, and those of the store. Setting one retires the generated one
 * for good; others that are stored stay valid.
 */
export class RootKeys {
  readonly #deps: RootKeysDeps;
  #configured: readonly string[] = [];

  constructor(deps: RootKeysDeps) {
    this.#deps = deps;
    this.configure(deps.configured);
  }

  /** From now on these are the root keys from the settings. */
  configure(configured: readonly Secret[]): void {
    this.#configured = configured.map((key) => sha256(key.reveal()));
  }

  /** Announces it to all replicas and edges, which cache verdicts on root keys. */
  announceChange(): Promise<void> {
    return this.#deps.store.announceChange();
  }

  /** Whether there is a root key that a caller may have. Rejects with `RootKeyRetired` if there cannot be one. */
  async areAny(): Promise<boolean> {
    if (this.#configured.length > 0) return true;
    const presence = await this.#deps.store.presence(this.#deps.clock.nowMs());
    if (presence === "retired" && !this.#deps.mayGenerateAgain) throw new RootKeyRetired();
    return presence === "some" || presence === "generated";
  }

  /** Whether the generated root key is the only one. If it is lost, nobody can manage keys. */
  async isGeneratedOnly(): Promise<boolean> {
    return this.#configured.length === 0 && (await this.#deps.store.presence(this.#deps.clock.nowMs())) === "generated";
  }

  /** If there are root keys from the settings, the generated one is not valid any more, unless it is one of them. */
  async retireGenerated(): Promise<void> {
    if (this.#configured.length === 0) return;
    await this.#deps.store.retireGenerated(this.#deps.clock.nowMs(), this.#configured);
  }

  /** As `CheckRootKey` has it. Garbage costs the store nothing. */
  check(presented: Secret): MaybePromise<RootKeyVerdict | undefined> {
    const text = presented.reveal();
    const digest = sha256(text);
    // Every digest is compared, in constant time, also after a match.
    if (this.#configured.filter((known) => equalDigests(known, digest)).length > 0) return configured;
    return text.startsWith(`${rootKeyPrefix}_`) && isWellFormedKey(text) ? this.#find(digest) : undefined;
  }

  async #find(digest: string): Promise<RootKeyVerdict | undefined> {
    const verdict = await this.#deps.store.findByDigest(digest);
    const isRetired = this.#configured.length > 0 && verdict?.rootKeyId === generatedRootKeyId;
    return isRetired ? undefined : verdict;
  }

  /**
   * If there are no root keys, generates one and returns it, this one time only. `write` writes it to a file before it
   * becomes valid, so that a crash never loses it.
   */
  async generateFirst(write: (rootKey: Secret) => WrittenRootKey): Promise<Secret | undefined> {
    const { store, clock, random } = this.#deps;
    if (await this.areAny()) return undefined;

    const { key, start } = formatKey(rootKeyPrefix, random.bytes(rootKeyBytes));
    const generated = new Secret(key);
    const written = write(generated);
    const isFirst = await store.addFirst(sha256(key), start, clock.nowMs());
    if (isFirst) written.commit();
    else written.rollback();
    return isFirst ? generated : undefined;
  }
}

/** A generated root key that was written to a file, before it is known whether it becomes the valid one. */
export interface WrittenRootKey {
  /** It is the valid one. */
  commit(): void;
  /** Another process was first, and its root key is the valid one. */
  rollback(): void;
}

interface RootKeysDeps extends Pick<Ambient, "clock" | "random"> {
  readonly configured: readonly Secret[];
  /** Whether a new root key is generated where the one that was generated is retired. */
  readonly mayGenerateAgain?: boolean;
  readonly store: RootKeyStore;
}

export interface CreateRootKeyRequest extends Allowance {
  readonly name: string | undefined;
}

interface CreatedRootKey {
  readonly rootKeyId: string;
  /** The only copy of the secret. */
  readonly rootKey: string;
}

/** Throws as `createWithSecret`. */
export function createRootKey(
  management: Management,
  request: CreateRootKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedRootKey> {
  const { random } = deps;
  return createWithSecret(management, request, idempotencyKey, deps, async (event) => {
    const { key, start } = formatKey(rootKeyPrefix, random.bytes(rootKeyBytes));
    const rootKeyId = formatId("root", event.atMs, random.bytes(idRandomLength));
    const created = { ...request, id: rootKeyId, digest: sha256(key), start, createdAtMs: event.atMs };
    return { answer: { rootKeyId, rootKey: key }, command: { kind: "createRootKey", created, event } };
  });
}
