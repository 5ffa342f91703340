import type { Clock } from "../ambient/clock.ts";
import { sha256 } from "../ambient/crypto.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RootKeyVerdict } from "../domain/root-key.ts";
import type { Secret } from "../domain/secret.ts";
import type { Change, ChangeCache } from "./changes.ts";
import type { CheckRootKey } from "./root-access.ts";

/** More root keys than anybody has. The one that was learnt first makes room. */
const verdictsMax = 10_000;

/**
 * Caches what is known of each root key that was presented, by its digest, until root keys change, and serves it while
 * news of changes is current. Nothing is cached for texts that are no root key.
 */
export class CachedVerdicts implements ChangeCache {
  readonly #check: CheckRootKey;
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #verdicts = new Map<string, RootKeyVerdict>();
  /** Counts the changes. What was asked before the latest one may be out of date when it is answered. */
  #changes = 0;
  #servedUntilMs = Number.NEGATIVE_INFINITY;

  /** `ttlMs`: how long verdicts are served after the moment as of which news was last current; 0 turns the cache off. */
  constructor(check: CheckRootKey, ttlMs: number, clock: Clock) {
    this.#check = check;
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  readonly check: CheckRootKey = (presented) => {
    const digest = sha256(presented.reveal());
    const known = this.#verdicts.get(digest);
    if (known !== undefined && this.#clock.monotonicMs() < this.#servedUntilMs) return known;
    return this.#learn(presented, digest);
  };

  #learn(presented: Secret, digest: string): MaybePromise<RootKeyVerdict | undefined> {
    const changes = this.#changes;
    return andThen(this.#check(presented), (verdict) => {
      if (verdict === undefined) this.#verdicts.delete(digest);
      else if (changes === this.#changes) this.#cache(digest, verdict);
      return verdict;
    });
  }

  #cache(digest: string, verdict: RootKeyVerdict): void {
    this.#verdicts.set(digest, verdict);
    if (this.#verdicts.size <= verdictsMax) return;
    const [oldest] = this.#verdicts.keys();
    this.#verdicts.delete(oldest as string);
  }

  invalidate({ kind }: Change): void {
    if (kind === "rootKeys") this.invalidateAll();
  }

  invalidateAll(): void {
    this.#changes++;
    this.#verdicts.clear();
  }

  newsIsCurrent(atMs: number): void {
    this.#servedUntilMs = Math.max(this.#servedUntilMs, atMs + this.#ttlMs);
  }
}
