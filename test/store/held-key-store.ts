import type { Key, NewKey } from "../../src/domain/key.ts";
import type { MaybePromise } from "../../src/domain/maybe-promise.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { type Command, resourceOf } from "../../src/store/commands.ts";
import type { KeyLookup } from "../../src/store/key-lookup.ts";
import type { Management, Outcome } from "../../src/store/management.ts";
import { foundAs, sampleKey } from "../contract/sample-keys.ts";
import { TestClock } from "../support/test-clock.ts";

interface HeldLookup {
  readonly digest: string;
  readonly promise: Promise<Key | undefined>;
  readonly resolve: (key: Key | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** A store whose look-ups end when the test says so. The key of digest `k` has the id `id of k`. */
export class HeldKeyStore implements KeyLookup, Management {
  readonly asked: string[] = [];
  readonly created: string[] = [];
  /** Whether questions for the same key get the same promise. */
  isSharing = false;
  /** Whether look-ups are answered at once, without a promise. */
  isSynchronous = false;
  readonly #digests = new Map<string, RateLimit | undefined>();
  #held: HeldLookup[] = [];

  add(digest: string, rateLimit?: RateLimit): this {
    this.#digests.set(digest, rateLimit);
    return this;
  }

  newKey(digest: string): NewKey {
    return sampleKey(new TestClock(), { id: `id of ${digest}`, secretDigest: digest });
  }

  get underWay(): number {
    return this.#held.length;
  }

  findByDigest(digest: string): MaybePromise<Key | undefined> {
    this.asked.push(digest);
    if (this.isSynchronous) return this.#read(digest);
    const shared = this.isSharing ? this.#held.find((held) => held.digest === digest) : undefined;
    if (shared !== undefined) return shared.promise;
    const { promise, resolve, reject } = Promise.withResolvers<Key | undefined>();
    this.#held.push({ digest, promise, resolve, reject });
    return promise;
  }

  async change(command: Command): Promise<Outcome> {
    if (command.kind === "createKey") {
      this.created.push(command.created.id);
      return { outcome: "done", changed: [] };
    }
    if (resourceOf(command) !== "key" || !("id" in command)) return { outcome: "done", changed: [] };
    const { id: keyId } = command;
    const digest = keyId.replace("id of ", "");
    if (!this.#digests.has(digest)) return { outcome: "missing" };
    if (command.kind === "deleteKey") this.#digests.delete(digest);
    if (command.kind === "updateKey") this.#digests.set(digest, command.changes.rateLimit ?? undefined);
    return { outcome: "done", changed: [{ keyId, digests: [digest] }] };
  }

  async read(): Promise<never> {
    throw new Error("nothing is read here");
  }

  answerOne(): void {
    const lookup = this.#held.shift();
    lookup?.resolve(this.#read(lookup.digest));
  }

  answerAll(): void {
    while (this.#held.length > 0) this.answerOne();
  }

  failAll(error: unknown): void {
    for (const lookup of this.#held.splice(0)) lookup.reject(error);
  }

  /** Reads the key of the oldest look-up now. The answer comes when the returned function is called. */
  readNow(): () => void {
    const lookup = this.#held.shift();
    const key = lookup && this.#read(lookup.digest);
    return () => lookup?.resolve(key);
  }

  #read(digest: string): Key | undefined {
    return this.#digests.has(digest)
      ? { ...foundAs(this.newKey(digest)), rateLimit: this.#digests.get(digest) }
      : undefined;
  }
}
