import { SeededRandom } from "../domain/seeded-random.ts";
import type { Call, FieldChanges, KeyFields, Kind, Operation, Ratelimit } from "./operations.ts";
import { bodyOf, keyIdOf } from "./operations.ts";

/** How often each kind is chosen, beside the others. New keys are made when there are fewer than there may be. */
const weights: Readonly<Partial<Record<Kind, number>>> = {
  verifyKey: 700,
  updateKey: 100,
  updateRemaining: 80,
  getKey: 60,
  rerollKey: 20,
  listKeys: 12,
  deleteKey: 8,
};

const keysMax = 20;

interface KnownKey {
  readonly keyId: string;
  /** The last two are verified most. */
  readonly secrets: string[];
  /** The highest that an answer has shown. */
  version: number;
  /** For `ifVersion` of calls that the caller does not wait for: each only once, so that it is known which one was done. */
  readonly guessed: Set<number>;
}

export interface NextCall {
  readonly operation: Operation;
  readonly replica: number;
  /** The caller leaves after so long, without an answer. */
  readonly leaveAfterMs?: number;
}

/** Chooses operations from a seed, by what answers have told so far. */
export class RandomOperations {
  readonly #random: SeededRandom;
  readonly #replicas: number;
  readonly #kinds: readonly (readonly [Kind, number])[];
  readonly #canImport: boolean;
  readonly #clock: () => number;
  readonly #keys = new Map<string, KnownKey>();
  /** Keys that are gone, which are verified all the same. */
  readonly #gone: KnownKey[] = [];
  /** To be made once more by the next caller, through any replica: two that meet are where mistakes are. */
  #again: Operation | undefined;
  #beingMade = 0;
  #changes = 0;

  constructor(options: { seed: number; replicas: number; kinds: readonly Kind[]; nowMs: () => number }) {
    this.#random = new SeededRandom(options.seed);
    this.#replicas = options.replicas;
    this.#kinds = (Object.entries(weights) as [Kind, number][]).filter(([kind]) => options.kinds.includes(kind));
    this.#canImport = options.kinds.includes("importKeys");
    this.#clock = options.nowMs;
  }

  /** Those that are gone included. */
  get everyKeyId(): string[] {
    return [...this.#keys.keys(), ...this.#gone.map(({ keyId }) => keyId)];
  }

  next(): NextCall {
    const random = this.#random;
    const operation = this.#again ?? this.#operation();
    const isAgain = this.#again !== undefined;
    this.#again = undefined;
    if (!isAgain && random.chance(operation.kind === "deleteKey" ? 0.6 : 0.2)) this.#again = this.#repeated(operation);
    const replica = random.integer(0, this.#replicas - 1);
    return this.#mayBeLeft(operation) && random.chance(0.015)
      ? { operation, replica, leaveAfterMs: random.integer(0, 12) }
      : { operation, replica };
  }

  /** Takes note of an answer. */
  learn(call: Call): void {
    const { operation } = call;
    if (operation.kind === "createKey" || operation.kind === "importKeys") this.#beingMade--;
    const keyId = keyIdOf(call);
    if (keyId === undefined) return;
    const made = bodyOf(call, "createKey")?.key ?? (operation.kind === "importKeys" ? operation.secret : undefined);
    if (made !== undefined) this.#keys.set(keyId, { keyId, secrets: [made], version: 1, guessed: new Set() });
    const known = this.#keys.get(keyId);
    if (known === undefined) return;
    const rerolled = bodyOf(call, "rerollKey");
    if (rerolled !== undefined) known.secrets.push(rerolled.key);
    const read = bodyOf(call, "getKey") ?? bodyOf(call, "updateKey");
    if (read !== undefined) known.version = Math.max(known.version, read.version);
    if (operation.kind === "verifyKey" || call.answer.status !== "notFound") return;
    this.#keys.delete(keyId);
    this.#gone.push(known);
  }

  #operation(): Operation {
    const random = this.#random;
    if (this.#keys.size + this.#beingMade < keysMax && (this.#keys.size === 0 || random.chance(0.2))) {
      this.#beingMade++;
      return this.#newKey();
    }
    const gone = random.chance(0.02) ? this.#gone.at(-random.integer(1, 8)) : undefined;
    if (gone !== undefined) return { kind: "verifyKey", keyId: gone.keyId, secret: gone.secrets.at(-1) as string };
    const key = this.#anyKey();
    if (key === undefined) return { kind: "verifyKey", keyId: "none", secret: "none" };
    const { keyId } = key;
    switch (this.#kind()) {
      case "updateKey":
        return { kind: "updateKey", keyId, ...this.#ifVersion(key), changes: this.#fieldChanges() };
      case "updateRemaining":
        return { kind: "updateRemaining", keyId, ...this.#counterChange() };
      case "getKey":
        return { kind: "getKey", keyId };
      case "listKeys":
        return { kind: "listKeys" };
      case "rerollKey":
        return { kind: "rerollKey", keyId, overlap: random.chance(0.3) ? 0 : random.integer(1, 900) };
      case "deleteKey":
        return { kind: "deleteKey", keyId };
      default:
        return { kind: "verifyKey", keyId, secret: this.#secretOf(key) };
    }
  }

  /** Undefined for what is not to be repeated. An update has a number of its own each time. */
  #repeated(operation: Operation): Operation | undefined {
    if (operation.kind === "createKey" || operation.kind === "importKeys") return undefined;
    if (operation.kind !== "updateKey") return operation;
    return { ...operation, changes: { ...operation.changes, meta: { change: ++this.#changes } } };
  }

  #kind(): Kind {
    const sum = this.#kinds.reduce((total, [, weight]) => total + weight, 0);
    let at = this.#random.integer(1, sum);
    for (const [kind, weight] of this.#kinds) {
      at -= weight;
      if (at <= 0) return kind;
    }
    return "verifyKey";
  }

  /** Some keys are used much more than others. */
  #anyKey(): KnownKey | undefined {
    const keys = [...this.#keys.values()];
    const last = keys.length - 1;
    return keys[this.#random.integer(0, this.#random.integer(0, last))];
  }

  #secretOf({ secrets }: KnownKey): string {
    const random = this.#random;
    const back = random.chance(0.65) ? 1 : random.chance(0.8) ? 2 : 3;
    return secrets[Math.max(0, secrets.length - back)] as string;
  }

  #newKey(): Operation {
    const random = this.#random;
    const change = ++this.#changes;
    const fields: KeyFields = {
      name: `name ${change}`,
      meta: { change },
      enabled: true,
      ...(random.chance(0.3) && { ownerId: `owner ${random.integer(1, 3)}` }),
      ...(random.chance(0.6) && { ratelimit: this.#ratelimit() }),
    };
    const counter = random.chance(0.6) ? { remaining: random.integer(0, 120) } : {};
    if (!this.#canImport || random.chance(0.7)) return { kind: "createKey", fields, ...counter };
    return { kind: "importKeys", fields, ...counter, secret: `imported-${change}-${random.integer(0, 1e9)}` };
  }

  #ratelimit(): Ratelimit {
    const random = this.#random;
    const limit = random.chance(0.5) ? random.integer(1, 8) : random.integer(9, 60);
    return { async: random.chance(0.4), limit, duration: random.chance(0.8) ? 1000 : 1500 };
  }

  #fieldChanges(): FieldChanges {
    const random = this.#random;
    const change = ++this.#changes;
    return {
      meta: { change },
      ...(random.chance(0.4) && { name: random.chance(0.15) ? null : `name ${change}` }),
      ...(random.chance(0.3) && { ownerId: random.chance(0.3) ? null : `owner ${random.integer(1, 3)}` }),
      ...(random.chance(0.45) && { enabled: random.chance(0.85) }),
      ...(random.chance(0.35) && { expires: this.#expires() }),
      ...(random.chance(0.45) && { ratelimit: random.chance(0.2) ? null : this.#ratelimit() }),
    };
  }

  #expires(): number | null {
    const random = this.#random;
    const nowMs = Math.round(this.#clock());
    if (random.chance(0.65)) return null;
    if (random.chance(0.5)) return nowMs + 3_600_000;
    return random.chance(0.7) ? nowMs + random.integer(50, 800) : nowMs - 1000;
  }

  #counterChange(): Pick<Extract<Operation, { kind: "updateRemaining" }>, "op" | "value"> {
    const random = this.#random;
    if (random.chance(0.5)) return { op: "set", value: random.chance(0.3) ? null : random.integer(0, 120) };
    return random.chance(0.6)
      ? { op: "increment", value: random.integer(1, 40) }
      : { op: "decrement", value: random.integer(1, 25) };
  }

  #ifVersion(key: KnownKey): { readonly ifVersion?: number } {
    const random = this.#random;
    if (!random.chance(0.4)) return {};
    return { ifVersion: Math.max(1, key.version - (random.chance(0.2) ? random.integer(1, 3) : 0)) };
  }

  /** Of an update that nobody waited for it must be possible to find out whether it was made: by the version it needs. */
  #mayBeLeft(operation: Operation): boolean {
    if (operation.kind === "verifyKey" || operation.kind === "updateRemaining" || operation.kind === "deleteKey")
      return true;
    if (operation.kind !== "updateKey" || operation.ifVersion === undefined) return false;
    if (operation.changes.expires != null && operation.changes.expires < this.#clock()) return false;
    const guessed = this.#keys.get(operation.keyId)?.guessed;
    if (guessed === undefined || guessed.has(operation.ifVersion)) return false;
    guessed.add(operation.ifVersion);
    return true;
  }
}
