import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import { formatKey } from "../domain/key-format.ts";
import { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { RootKeyStore } from "../store/root-key-store.ts";

const rootKeyBytes = 32;

/**
 * The root keys from the settings, if any. Then only those are valid, so that setting one retires a generated one.
 * Otherwise the root key that was generated at the first start. Neither they nor their digests leave this object.
 */
export class RootKeys {
  readonly #deps: RootKeysDeps;
  #digests: readonly string[] | undefined;

  constructor(deps: RootKeysDeps) {
    this.#deps = deps;
    if (deps.configured.length > 0) this.#digests = deps.configured.map((key) => sha256(key.reveal()));
  }

  get areKnown(): boolean {
    return this.#digests !== undefined;
  }

  /** Compares in constant time. Throws `Unavailable` until the root keys are known. */
  has(presented: Secret): boolean {
    if (this.#digests === undefined) throw new Unavailable("the root keys are not known yet");
    const digest = sha256(presented.reveal());
    // Every digest is compared, also after a match.
    return this.#digests.filter((known) => equalDigests(known, digest)).length > 0;
  }

  /** Reads the root keys from the store, if there are any. */
  async read(): Promise<void> {
    this.#digests ??= await storedDigests(this.#deps.store);
  }

  /** Reads the root keys from the store again, because they may have changed. */
  async refresh(): Promise<void> {
    if (this.#deps.configured.length > 0) return;
    const before = this.#digests;
    const stored = await storedDigests(this.#deps.store);
    // `load` may have stored the first one meanwhile.
    if (this.#digests === before) this.#digests = stored;
  }

  /**
   * Reads the root keys from the store. If there are none, generates one and returns it, this one time only. `write`
   * writes it to a file before it becomes valid, so that a crash never loses it.
   */
  async load(write: (rootKey: Secret) => WrittenRootKey): Promise<Secret | undefined> {
    const { store, clock, random } = this.#deps;
    await this.read();
    if (this.#digests !== undefined) return undefined;

    const generated = new Secret(formatKey("lk_root", random.bytes(rootKeyBytes)).key);
    const written = write(generated);
    const isFirst = await store.addFirst(sha256(generated.reveal()), clock.nowMs());
    if (isFirst) written.commit();
    else written.rollback();
    this.#digests = await storedDigests(store);
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
  readonly store: RootKeyStore;
}

async function storedDigests(store: RootKeyStore): Promise<readonly string[] | undefined> {
  const digests = await store.digests();
  return digests.length === 0 ? undefined : digests;
}
