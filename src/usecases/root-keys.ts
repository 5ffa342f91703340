import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import { formatKey, isWellFormedKey } from "../domain/key-format.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { type RootKeyVerdict, unlimitedRootKey } from "../domain/root-key.ts";
import { RootKeyRetired } from "../domain/root-key-retired.ts";
import { Secret } from "../domain/secret.ts";
import { generatedRootKeyId, type RootKeyStore } from "../store/root-key-store.ts";

/** Begins every root key that is stored. */
export const rootKeyPrefix = "lk_root";
export const rootKeyBytes = 32;

/** Of every root key from the settings. */
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

  /** Tells all replicas and edges, which remember what they were told of root keys. */
  announceChange(): Promise<void> {
    return this.#deps.store.announceChange();
  }

  /** Whether there is a root key that a caller may have. Rejects with `RootKeyRetired` if there cannot be one. */
  async areAny(): Promise<boolean> {
    if (this.#configured.length > 0) return true;
    const presence = await this.#deps.store.presence(this.#deps.clock.nowMs());
    if (presence === "retired" && !this.#deps.mayGenerateAgain) throw new RootKeyRetired();
    return presence === "some";
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
