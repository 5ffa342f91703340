import { isDeepStrictEqual } from "node:util";
import { sha256 } from "../../src/ambient/crypto.ts";
import { CostTooHigh } from "../../src/domain/costs.ts";
import type { Explanation } from "../../src/domain/explanation.ts";
import type { NewKey } from "../../src/domain/key.ts";
import type { PlannedRequest } from "../../src/domain/key-checks.ts";
import { Secret } from "../../src/domain/secret.ts";
import { counterOfOwner } from "../../src/domain/subject.ts";
import type { Verdict } from "../../src/domain/verification.ts";
import { type ExplainKeyDeps, type ExplainKeyRequest, explainKey } from "../../src/usecases/explain-key.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import {
  createKey,
  createOwner,
  deleteKey,
  deleteOwner,
  rerollKey,
  testEvent,
  updateOwner,
  updateOwnerRemaining,
  updateRemaining,
} from "../support/manage.ts";
import { readHoldersOf } from "../support/read-holders-of.ts";
import {
  randomChanges,
  randomKey,
  randomOwner,
  randomOwnerChanges,
  randomRequest,
  randomUse,
  secretOf,
} from "./random-cases.ts";
import type { Replica, World } from "./world.ts";

/** As `explainKey`, but one that is wrong may look where that cannot. */
export type Explain = (
  rootKey: Secret,
  request: ExplainKeyRequest,
  deps: ExplainKeyDeps & Pick<Replica, "channel">,
) => Promise<Explanation>;

export interface RunOptions {
  readonly seed: number;
  readonly cases: number;
  /** Another one, to see that its mistake is found. */
  readonly explain?: Explain;
}

const someRootKey = new Secret("root key");

/** How many keys are in a batch: their statements share commits, and they their time. */
const keysOfBatch = 125;
const casesOfKey = 8;
const casesOfBatch = keysOfBatch * casesOfKey;
const hourMs = 3_600_000;

/**
 * In each case a random key is used and changed at random on some replicas. Then a random verification of it is explained on
 * one of them, or on one that has never seen it, and made there. Answers what is wrong with that, each in a line, up to the
 * cases in which something is, and how often each code was explained.
 */
export async function runCases(world: World, { seed, cases, explain = explainKey }: RunOptions) {
  const problems: string[] = [];
  const codes = new Map<string, number>();
  for (let from = 0; from < cases; from += casesOfBatch) {
    const batchSeed = seed + from;
    const batch = new Batch(world, new SeededRandom(batchSeed), `${batchSeed}`, explain);
    await batch.begin();
    for (let i = 0; i < casesOfKey && problems.length === 0; i++) await batch.runCase(problems, codes);
    await batch.end();
    if (problems.length > 0) break;
  }
  return { problems, codes };
}

/** A key of the batch, and the text that it is explained and verified by. */
interface Subject {
  readonly key: NewKey;
  secret: string;
  /** Whether the text stands for the key, as long as there is one. */
  isOfKey: boolean;
}

interface Case extends Subject {
  readonly request: PlannedRequest;
  readonly replica: Replica;
}

class Batch {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #name: string;
  readonly #explain: Explain;
  /** A replica that no recall reaches returns by itself what it does not need: it is waited for. */
  readonly #hasOneCoordinator: boolean;
  readonly #join: () => Replica;
  readonly #replicas: Replica[];
  /** Those that are still there. */
  #living: readonly Replica[];
  #subjects: readonly Subject[] = [];

  constructor(world: World, random: SeededRandom, name: string, explain: Explain) {
    this.#world = world;
    this.#random = random;
    this.#name = name;
    this.#explain = explain;
    this.#hasOneCoordinator = random.chance(0.7);
    const shared = world.newCoordinator();
    this.#join = () => world.newReplica(this.#hasOneCoordinator ? shared : world.newCoordinator());
    this.#replicas = [this.#join(), this.#join(), this.#join()];
    this.#living = this.#replicas;
  }

  async begin(): Promise<void> {
    const { clock, management, settle } = this.#world;
    this.#subjects = Array.from({ length: keysOfBatch }, (_, i) => ({
      ...randomKey(this.#random, `key_${this.#name}_${i}`, clock.nowMs()),
      isOfKey: true,
    }));
    await settle(Promise.all(this.#subjects.map(({ key }) => createKey(management, key))));
    await settle(Promise.all(this.#subjects.map((subject) => this.#createOwner(subject))));
    clock.advance(5);
  }

  async runCase(problems: string[], codes: Map<string, number>): Promise<void> {
    await this.#prepare();
    // It has never seen any of the keys.
    const newcomer = this.#join();
    this.#replicas.push(newcomer);
    const cases: readonly Case[] = this.#subjects.map((subject) => ({
      ...subject,
      ...(this.#random.chance(0.02) && { secret: `${subject.secret}x`, isOfKey: false }),
      request: randomRequest(this.#random),
      replica: this.#random.pick([...this.#living, newcomer, newcomer]),
    }));
    const before = this.#state();
    const explained = await this.#settleEach(cases, (each) => this.#explainCase(each));
    const isTwice = this.#random.chance(0.25);
    const again = isTwice ? await this.#settleEach(cases, (each) => this.#explainCase(each)) : explained;
    if (!isDeepStrictEqual(before, this.#state())) problems.push(`batch ${this.#name}: explaining has changed a count`);
    const verified = await this.#settleEach(cases, ({ replica, secret, request }) =>
      replica.verifyKey({ key: new Secret(secret), ...request }),
    );
    cases.forEach((each, i) => {
      const [first, second, verdict] = [explained[i], again[i], verified[i]] as [
        Explained,
        Explained,
        Outcome<Verdict>,
      ];
      const code = typeof first === "string" ? first : first.code;
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (print(first) !== print(second)) problems.push(tell(each, "explained in two ways", first, second));
      if (!isAsExplained(first, verdict)) problems.push(tell(each, "not decided as explained", first, verdict));
    });
  }

  async end(): Promise<void> {
    await this.#world.settle(Promise.all(this.#replicas.map((replica) => replica.stop())));
  }

  /** Keys are used and changed, a replica may die, and time passes. */
  async #prepare(): Promise<void> {
    const { clock, settle } = this.#world;
    for (let uses = this.#random.integer(0, 2); uses > 0; uses--) await this.#useSome();
    await settle(Promise.all(this.#subjects.map((subject) => this.#change(subject))));
    if (this.#random.chance(0.1) && this.#living.length === 3) {
      this.#living[0]?.kill();
      this.#living = this.#living.slice(1);
    }
    clock.advance(this.#random.pick([0, 0, 0, 0, hourMs / 4, hourMs, 25 * hourMs]));
    if (this.#random.chance(0.5)) await this.#useSome();
    if (!this.#hasOneCoordinator) await this.#world.calmDown();
  }

  #explainCase({ key, secret, request, isOfKey, replica }: Case): Promise<Explanation> {
    const { clock, management } = this.#world;
    const by = isOfKey && this.#random.chance(0.5) ? { keyId: key.id } : { key: new Secret(secret) };
    const { limiter, channel } = replica;
    return this.#explain(
      someRootKey,
      { by, ...request },
      { limiter, channel, clock, readHolders: readHoldersOf(management, clock) },
    );
  }

  async #useSome(): Promise<void> {
    const used = this.#subjects.filter(() => this.#random.chance(0.6));
    await this.#settleEach(used, ({ secret }) =>
      this.#random.pick(this.#living).verifyKey({ key: new Secret(secret), ...randomUse(this.#random) }),
    );
  }

  async #createOwner({ key }: Subject): Promise<void> {
    const owner = key.ownerId === undefined ? undefined : randomOwner(this.#random, key.id);
    if (owner !== undefined) await createOwner(this.#world.management, owner);
  }

  async #changeOwner(subject: Subject, ownerId: string): Promise<void> {
    const { management } = this.#world;
    const what = this.#random.integer(0, 9);
    if (what === 0) await deleteOwner(management, ownerId);
    // One that exists stays as it is.
    else if (what === 1) await this.#createOwner(subject);
    else if (what < 5) await updateOwnerRemaining(management, ownerId, "set", this.#random.pick([undefined, 0, 7]));
    else await updateOwner(management, ownerId, randomOwnerChanges(this.#random));
    for (const replica of this.#replicas) replica.holderChanged(counterOfOwner(ownerId));
  }

  async #change(subject: Subject): Promise<void> {
    const { management, clock } = this.#world;
    const { ownerId } = subject.key;
    if (ownerId !== undefined && this.#random.chance(0.15)) return this.#changeOwner(subject, ownerId);
    const { id: keyId } = subject.key;
    const what = this.#random.integer(0, 60);
    if (what === 0 && this.#random.chance(0.3)) await deleteKey(management, keyId);
    else if (what === 1) {
      const secret = secretOf(`${keyId} ${clock.nowMs()}`).key;
      const overlapMs = this.#random.pick([0, 2 * hourMs]);
      await rerollKey(management, keyId, { secretDigest: sha256(secret), overlapMs });
      // Or it is still verified by the one before, which ends.
      subject.isOfKey = this.#random.chance(0.7);
      if (subject.isOfKey) subject.secret = secret;
    } else if (what < 8) await updateRemaining(management, keyId, "set", this.#random.pick([undefined, 0, 7]));
    else if (what < 16) {
      const changes = randomChanges(this.#random);
      await management.change({ kind: "updateKey", id: keyId, changes, event: testEvent(clock.nowMs()) });
    } else return;
    for (const replica of this.#replicas) replica.holderChanged(keyId);
  }

  #state() {
    const local = this.#replicas.map(({ limiter }) => this.#subjects.map(({ key }) => localStates(limiter, key)));
    // Subjects of owners have the ids of their keys in them.
    return { ...this.#world.rows(`key_${this.#name}_`), local };
  }

  #settleEach<Each, Value>(
    all: readonly Each[],
    make: (each: Each) => Value | Promise<Value>,
  ): Promise<readonly Outcome<Value>[]> {
    return this.#world.settle(Promise.all(all.map((each) => outcomeOf(() => make(each)))));
  }
}

/** An error as a text. */
type Outcome<Value> = Value | string;
type Explained = Outcome<Explanation>;

async function outcomeOf<Value>(make: () => Value | Promise<Value>): Promise<Outcome<Value>> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof CostTooHigh) return "CostTooHigh";
    return `failed: ${(error as Error).message}`;
  }
}

function isAsExplained(explained: Explained, verdict: Outcome<Verdict>): boolean {
  if (typeof explained === "string" || typeof verdict === "string")
    return explained === verdict && explained === "CostTooHigh";
  const { code, reason, checks } = explained;
  if (code !== verdict.code || print(reason) !== print(verdict.reason)) return false;
  if (code !== "VALID" || !("key" in verdict)) return true;
  const left = { key: verdict.remaining, owner: verdict.ownerRemaining };
  // What is left is not asked for where nothing is taken.
  return checks.every(
    (each) => each.check !== "counter" || each.cost === 0 || left[each.of] === each.remaining - each.cost,
  );
}

function localStates(limiter: Replica["limiter"], { id, rateLimit, rateLimits = [] }: NewKey) {
  const rules = [
    ...(rateLimit ? [{ subject: id, rule: rateLimit }] : []),
    ...rateLimits.map(({ name, rule }) => ({ subject: `${id}/${name}`, rule })),
  ];
  const local = rules.filter(({ rule }) => rule.mode === "local");
  return local.map(({ subject, rule }) => {
    const { limit, remaining } = limiter.peek(subject, rule) as { limit: number; remaining: number };
    return [limit, remaining];
  });
}

function print(value: unknown): string | undefined {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner instanceof Map) return Object.fromEntries(inner);
    // The end of a window that is not open moves with the time.
    const { limit, remaining } = Object(inner);
    return limit !== undefined && limit === remaining ? { ...Object(inner), resetMs: "in its duration" } : inner;
  });
}

function tell({ key, request }: Case, what: string, ...outcomes: unknown[]): string {
  return `${key.id} ${what}: ${outcomes.map(print).join(" and ")}\n  ${print(request)}\n  ${print(key)}`;
}
