import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { counterOfOwner, limitOfKey, limitOfOwner } from "../../src/domain/subject.ts";
import type { LatchkeyClient } from "../../src/sdk/index.ts";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { type ClientKind, latchkeyOf } from "./clients.ts";
import { surely } from "./create-surely.ts";
import type { LoadedFleet } from "./fleet.ts";
import type { LatchkeyProcess } from "./latchkey-process.ts";
import { testRootKey } from "./test-root-key.ts";

/** A customer, and keys of it that all are alike. */
export interface Customer {
  readonly ownerId: string;
  readonly keys: number;
  /** What the customer has, and what each of its keys has. Absent: no counter. */
  readonly remaining?: number;
  readonly keyRemaining?: number;
  /** Strict limits by name, with windows that do not end meanwhile. */
  readonly limits?: Readonly<Record<string, number>>;
  readonly keyLimits?: Readonly<Record<string, number>>;
  /** The largest cost of a verification. With 1 there are no others. */
  readonly costMax: number;
}

interface PricedKey {
  readonly key: string;
  /** The counters and the limits that a verification takes from. */
  readonly counters: readonly string[];
  readonly limits: readonly { readonly name: string; readonly subject: string }[];
  readonly costMax: number;
}

/** What callers know of the counter of a key or owner. */
export interface KnownCounter extends Account {
  readonly of: "key" | "owner";
  readonly id: string;
}

/** What callers know of one counter or window. */
interface Account {
  /** What there was at the start, with what was added since; or the limit. */
  start: number;
  /** The costs of all valid answers. */
  acknowledged: number;
  /** The costs of calls whose outcome is not known. */
  open: number;
}

const kinds: readonly ClientKind[] = ["sdk", "grpc"];
const durationMs = 2_592_000_000;

/** Callers of all replicas that verify keys at random costs, and keep an account of every counter and every window. */
export class PricedLoad {
  readonly answers: Record<string, number> = {};
  readonly #fleet: LoadedFleet;
  readonly #random: SeededRandom;
  readonly #keys: PricedKey[] = [];
  readonly #counters = new Map<string, KnownCounter>();
  readonly #windows = new Map<string, Account>();
  readonly #sharing: { readonly ownerId: string; readonly keyIds: readonly string[] }[] = [];

  constructor(fleet: LoadedFleet, random: SeededRandom) {
    this.#fleet = fleet;
    this.#random = random;
  }

  async add({ ownerId, keys, remaining, keyRemaining, costMax, ...limited }: Customer): Promise<void> {
    const { limits = {}, keyLimits = {} } = limited;
    const client = this.#reader();
    await client.owners.createOwner({ ownerId, ...counterOf(remaining), ...rulesOf(limits) });
    if (remaining !== undefined)
      this.#counters.set(counterOfOwner(ownerId), { ...account(remaining), of: "owner", id: ownerId });
    for (const [name, limit] of Object.entries(limits)) this.#windows.set(limitOfOwner(ownerId, name), account(limit));
    const keyIds: string[] = [];
    for (let i = 0; i < keys; i++) {
      const own = { apiId: "api", ownerId, ...counterOf(keyRemaining), ...rulesOf(keyLimits) };
      const { key, keyId } = await client.keys.createKey(own);
      keyIds.push(keyId);
      if (keyRemaining !== undefined) this.#counters.set(keyId, { ...account(keyRemaining), of: "key", id: keyId });
      for (const [name, limit] of Object.entries(keyLimits)) this.#windows.set(limitOfKey(keyId, name), account(limit));
      this.#keys.push({
        key,
        counters: [
          ...(keyRemaining === undefined ? [] : [keyId]),
          ...(remaining === undefined ? [] : [counterOfOwner(ownerId)]),
        ],
        limits: [
          ...Object.keys(keyLimits).map((name) => ({ name, subject: limitOfKey(keyId, name) })),
          ...Object.keys(limits).map((name) => ({ name, subject: limitOfOwner(ownerId, name) })),
        ],
        costMax,
      });
    }
    // Then whatever is taken from one of the keys is taken from the owner, and nothing else.
    if (remaining !== undefined && keyRemaining !== undefined) this.#sharing.push({ ownerId, keyIds });
  }

  /** So many callers verify while `fault` runs. Resolves when every call has ended. */
  async during(callers: number, fault: () => Promise<void>): Promise<void> {
    let isStopped = false;
    const calling = Array.from({ length: callers }, (_, i) => this.#call(i, () => isStopped));
    try {
      await fault();
    } finally {
      isStopped = true;
      await Promise.all(calling);
    }
  }

  /** Resolves when there were so many more answers. */
  async answered(more: number): Promise<void> {
    const wanted = this.#answered + more;
    while (this.#answered < wanted) await delay(2);
  }

  /** How many callers were told that a limit of an owner is reached. */
  get refused(): number {
    return this.answers["RATE_LIMITED of owner"] ?? 0;
  }

  /** By their subjects. */
  get counters(): ReadonlyMap<string, KnownCounter> {
    return this.#counters;
  }

  /** Adds so much to a balance, or takes it away, once. Through any replica, again and again until one answers. */
  async change({ of, id }: Pick<KnownCounter, "of" | "id">, by: number): Promise<void> {
    const counter = this.#counters.get(of === "key" ? id : counterOfOwner(id)) as KnownCounter;
    const change = { op: by < 0 ? "decrement" : "increment", value: Math.abs(by) } as const;
    const repeated = { idempotencyKey: randomUUID() };
    for (;;) {
      const { baseUrl } = this.#fleet.replica(this.#random.integer(0, this.#fleet.size - 1));
      const { keys, owners } = latchkeyOf("sdk", baseUrl, testRootKey);
      try {
        if (of === "key") await keys.updateRemaining({ keyId: id, ...change }, repeated);
        else await owners.updateRemaining({ ownerId: id, ...change }, repeated);
        counter.start += by;
        return;
      } catch (error) {
        const { status = 503 } = error as { status?: number };
        if (status !== 503) throw error;
        await delay(10);
      }
    }
  }

  get #answered(): number {
    return Object.values(this.answers).reduce((sum, times) => sum + times, 0);
  }

  /** What is wrong with the balances by what callers were told. While no caller waits. */
  async problems(): Promise<string[]> {
    const problems: string[] = [];
    const taken = new Map<string, number>();
    for (const [subject, counter] of this.#counters) {
      const { start, acknowledged, open } = counter;
      const paid = start - (await readCounter(this.#reader(), counter)).remaining;
      taken.set(subject, paid);
      if (paid < acknowledged) problems.push(`${subject} has lost ${acknowledged - paid}`);
      if (paid > acknowledged + open) problems.push(`${subject} has paid ${paid}, ${acknowledged} told, ${open} open`);
    }
    for (const { ownerId, keyIds } of this.#sharing) {
      const ofKeys = keyIds.reduce((sum, keyId) => sum + (taken.get(keyId) ?? Number.NaN), 0);
      const shared = taken.get(counterOfOwner(ownerId));
      if (shared !== ofKeys) problems.push(`${ownerId} has paid ${shared}, and its keys ${ofKeys}`);
    }
    for (const [subject, { start, acknowledged }] of this.#windows)
      if (acknowledged > start) problems.push(`${subject} let ${acknowledged} of ${start} pass`);
    return problems;
  }

  /** What was not used of a window: by valid answers, and by calls whose outcome is not known. */
  leftIn(subject: string): { readonly atMost: number; readonly atLeast: number } {
    const { start, acknowledged, open } = this.#windows.get(subject) as Account;
    return { atMost: start - acknowledged, atLeast: start - acknowledged - open };
  }

  #reader(): LatchkeyClient {
    return latchkeyOf("sdk", this.#fleet.replica(0).baseUrl, testRootKey);
  }

  async #call(caller: number, isStopped: () => boolean): Promise<void> {
    let current: { replica: LatchkeyProcess; client: LatchkeyClient } | undefined;
    while (!isStopped()) {
      const replica = this.#fleet.replica(caller % this.#fleet.size);
      if (this.#fleet.isKilled(replica)) {
        await delay(5);
        continue;
      }
      const kind = kinds[caller % kinds.length] as ClientKind;
      if (current?.replica !== replica) current = { replica, client: latchkeyOf(kind, replica.baseUrl, testRootKey) };
      await this.#verify(current.client, this.#random.pick(this.#keys));
    }
  }

  async #verify(client: LatchkeyClient, { key, counters, limits, costMax }: PricedKey): Promise<void> {
    const cost = this.#cost(costMax);
    // A cost by name goes to the key's limit and to the owner's.
    const costs = new Map(limits.map(({ name }) => [name, this.#cost(costMax)]));
    const taken = [
      ...counters.map((subject) => ({ account: this.#counters.get(subject) as Account, units: cost })),
      ...limits.map(({ name, subject }) => ({
        account: this.#windows.get(subject) as Account,
        units: costs.get(name) as number,
      })),
    ];
    const named = [...costs].map(([name, units]) => ({ name, cost: units }));
    for (const { account, units } of taken) account.open += units;
    try {
      const { code, reason } = await client.keys.verifyKey({
        key,
        remaining: { cost },
        ...(named.length > 0 && { ratelimits: named }),
      });
      for (const { account, units } of taken) {
        account.open -= units;
        if (code === "VALID") account.acknowledged += units;
      }
      this.#note(reason === undefined ? code : `${code} of ${reason.of}`);
    } catch {
      // It may have been taken: the account stays open.
      this.#note("unknown");
      await delay(10);
    }
  }

  /** Most calls are cheap. */
  #cost(costMax: number): number {
    if (costMax === 1) return 1;
    return this.#random.integer(0, this.#random.chance(0.7) ? 2 : costMax);
  }

  #note(answer: string): void {
    this.answers[answer] = (this.answers[answer] ?? 0) + 1;
  }
}

/** What the service says of the counter. */
export async function readCounter(
  { keys, owners }: LatchkeyClient,
  { of, id }: Pick<KnownCounter, "of" | "id">,
): Promise<{ readonly remaining: number; readonly spent: number }> {
  const read = await surely(async () => (of === "key" ? keys.getKey({ keyId: id }) : owners.getOwner({ ownerId: id })));
  const { remaining = Number.NaN, spent = Number.NaN } = read;
  return { remaining, spent };
}

function account(start: number): Account {
  return { start, acknowledged: 0, open: 0 };
}

function counterOf(remaining: number | undefined): { remaining?: number } {
  return remaining === undefined ? {} : { remaining };
}

function rulesOf(limits: Readonly<Record<string, number>>) {
  const ratelimits = Object.entries(limits).map(([name, limit]) => ({
    name,
    limit,
    duration: durationMs,
    async: false,
  }));
  return ratelimits.length === 0 ? {} : { ratelimits };
}
