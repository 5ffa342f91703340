import type { Clock } from "../ambient/clock.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { AtOnce } from "../domain/at-once.ts";
import type { Key } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { KeyChange } from "./key-changes.ts";
import type { KeyStore } from "./key-store.ts";

export interface KeyCacheOptions {
  /** How long a key may be served without looking again; 0 turns the cache off. */
  readonly ttlMs: number;
  readonly keysMax: number;
  /** Look-ups in the store at once; more wait their turn. A flood of unknown keys cannot take more than these. */
  readonly lookupsMax: number;
  /** Look-ups waiting for their turn; one more is refused with `Unavailable`. */
  readonly lookupsQueuedMax: number;
}

/**
 * Remembers verified keys. Only keys that exist are remembered, and only for a while; this replica's own changes show at
 * once. Callers who miss the same key share one look-up.
 */
export class CachedKeyStore implements KeyStore {
  readonly #store: KeyStore;
  readonly #options: KeyCacheOptions;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  /** In order of their age: the first is the first to go. */
  readonly #entries = new Map<string, { key: Key; untilMs: number }>();
  readonly #underWay = new Map<string, Promise<Key | undefined>>();
  readonly #turns: Turn[] = [];
  #lookups = 0;
  /** Counts changes: a look-up that began before one must not put the key back as it was. */
  #changes = 0;

  readonly create: KeyStore["create"];

  constructor(store: KeyStore, options: KeyCacheOptions, ambient: { clock: Clock; metrics: Metrics }) {
    this.#store = store;
    this.#options = options;
    this.#clock = ambient.clock;
    this.#metrics = ambient.metrics;
    this.create = store.create.bind(store);
  }

  get size(): number {
    return this.#entries.size;
  }

  findByDigest(digest: string, options?: { readonly anew: boolean }): AtOnce<Key | undefined> {
    if (options?.anew) this.#forget([digest]);
    const entry = this.#entries.get(digest);
    if (entry !== undefined && this.#clock.monotonicMs() < entry.untilMs) {
      this.#metrics.keyCache("hit");
      return entry.key;
    }
    const underWay = this.#underWay.get(digest);
    if (underWay !== undefined) {
      this.#metrics.keyCache("shared");
      return underWay;
    }
    this.#metrics.keyCache("miss");
    const lookup = this.#lookUp(digest).finally(() => {
      // A change meanwhile may have made room for a newer look-up, which others have joined since.
      if (this.#underWay.get(digest) === lookup) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, lookup);
    return lookup;
  }

  setRateLimit(keyId: string, rateLimit: RateLimit | undefined): Promise<readonly string[] | undefined> {
    return this.#change(keyId, () => this.#store.setRateLimit(keyId, rateLimit));
  }

  delete(keyId: string): Promise<readonly string[] | undefined> {
    return this.#change(keyId, () => this.#store.delete(keyId));
  }

  async #change(
    keyId: string,
    change: () => Promise<readonly string[] | undefined>,
  ): Promise<readonly string[] | undefined> {
    let digests: readonly string[] | undefined;
    try {
      digests = await change();
      return digests;
    } finally {
      this.forget({ keyId, digests });
    }
  }

  /** Another replica has changed or deleted the key. */
  forget({ keyId, digests }: KeyChange): void {
    this.#changes++;
    this.#forget(digests ?? this.#digestsOf(keyId));
  }

  /** Other replicas may have changed or deleted any key. */
  forgetAll(): void {
    this.#changes++;
    this.#entries.clear();
    this.#underWay.clear();
  }

  #forget(digests: readonly string[]): void {
    for (const digest of digests) {
      this.#entries.delete(digest);
      this.#underWay.delete(digest);
    }
  }

  /**
   * Looks through everything: only for a change whose outcome is not known, or a deletion that another replica or a lost
   * reply was ahead of. The key may have changed all the same.
   */
  #digestsOf(keyId: string): string[] {
    return [...this.#entries].filter(([, { key }]) => key.id === keyId).map(([digest]) => digest);
  }

  async #lookUp(digest: string): Promise<Key | undefined> {
    await this.#turn();
    try {
      const changesBefore = this.#changes;
      const key = await this.#store.findByDigest(digest);
      if (key !== undefined && changesBefore === this.#changes) this.#remember(digest, key);
      return key;
    } catch (error) {
      // Those in line would wait as long again for the same.
      if (error instanceof Unavailable) for (const turn of this.#turns.splice(0)) turn.reject(error);
      throw error;
    } finally {
      // The place goes straight to the next in line: a newcomer in between would be one too many.
      const next = this.#turns.shift();
      if (next === undefined) this.#lookups--;
      else next.begin();
    }
  }

  async #turn(): Promise<void> {
    if (this.#lookups < this.#options.lookupsMax) {
      this.#lookups++;
      return;
    }
    if (this.#turns.length >= this.#options.lookupsQueuedMax)
      throw new Unavailable("too many keys are being looked up");
    await new Promise<void>((begin, reject) => {
      this.#turns.push({ begin, reject });
    });
  }

  #remember(digest: string, key: Key): void {
    if (this.#options.ttlMs === 0) return;
    // Deleted first, so that a renewed entry moves to the young end.
    this.#entries.delete(digest);
    this.#entries.set(digest, { key, untilMs: this.#clock.monotonicMs() + this.#options.ttlMs });
    if (this.#entries.size > this.#options.keysMax) {
      for (const oldest of this.#entries.keys()) {
        this.#entries.delete(oldest);
        break;
      }
    }
  }
}

/** A look-up that waits for its place. */
interface Turn {
  readonly begin: () => void;
  readonly reject: (error: Unavailable) => void;
}
