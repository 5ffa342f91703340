import { setTimeout as delay } from "node:timers/promises";
import type { KeysClient } from "../../src/sdk/index.ts";
import { clientOf } from "./clients.ts";
import { accountFor } from "./crash-load.ts";
import { createSurely } from "./create-surely.ts";
import type { LoadedFleet } from "./fleet.ts";
import type { LatchkeyProcess } from "./latchkey-process.ts";
import { query } from "./run-statement.ts";
import { testRootKey } from "./test-root-key.ts";

/** A counted key and what its callers have been told. */
interface CountedKey {
  readonly keyId: string;
  readonly key: string;
  /** The ledger's balance at the last account, and the values that callers were told since. */
  before: number;
  acknowledged: number[];
  /** Calls without an answer, or answered by 503, that no use has been found for yet: each may have used one. */
  unknown: number;
  /** A caller was told that no use is left. There are no refills: from then on none may be granted. */
  isUsedUp: boolean;
  /** When the call began that each replica answered last. */
  readonly servedMs: number[];
}

/** The results of a load, over all keys and accounts. */
export interface LoadFigures {
  acknowledged: number;
  /** Calls that were told that no use is left. */
  refused: number;
  /** Calls that a killed replica never answered. */
  unanswered: number;
  /** Calls answered by 503. */
  unavailable: number;
  lost: number;
  extra: number;
  /** Values of `remaining` that two callers of one key were told. */
  doubled: number;
}

const protocols = ["sdk", "grpc"] as const;
const stallMs = 120_000;
const manyUses = 1_000_000;

/** Many callers of every replica of a fleet, on counted keys that they share. Callers outlive every failure. */
export class FleetLoad {
  readonly figures: LoadFigures = {
    acknowledged: 0,
    refused: 0,
    unanswered: 0,
    unavailable: 0,
    lost: 0,
    extra: 0,
    doubled: 0,
  };
  /** What must not happen at all: uses of a key that was used up, other refusals, and failures of another kind. */
  readonly oddities: string[] = [];
  readonly #fleet: LoadedFleet;
  readonly #keys: CountedKey[];
  readonly #told = new Set<string>();
  readonly #usesOf: number[];

  private constructor(fleet: LoadedFleet, keys: CountedKey[]) {
    this.#fleet = fleet;
    this.#keys = keys;
    this.#usesOf = Array.from({ length: fleet.size }, () => 0);
  }

  /** So many keys that cannot be used up, and one for each number of `few`, which can. */
  static async create(fleet: LoadedFleet, keys: number, few: readonly number[] = []): Promise<FleetLoad> {
    const client = clientOf("sdk", fleet.replica(0).baseUrl, testRootKey);
    const created = await Promise.all(
      [...Array.from({ length: keys }, () => manyUses), ...few].map(async (remaining) => {
        const { key, keyId } = await createSurely(client, { apiId: "api", remaining });
        return { key, keyId, before: remaining, acknowledged: [], unknown: 0, isUsedUp: false, servedMs: [] };
      }),
    );
    return new FleetLoad(fleet, created);
  }

  get usedUp(): number {
    return this.#keys.filter(({ isUsedUp }) => isUsedUp).length;
  }

  /** Uses the keys from many sides while `fault` runs. Resolves when every call under way has ended. */
  async during(fault: () => Promise<void>, callersPerProtocol = 4): Promise<void> {
    let stopped = false;
    const callers = Array.from({ length: this.#fleet.size }, (_, index) =>
      protocols.flatMap((kind) =>
        Array.from({ length: callersPerProtocol }, (_, n) => this.#call(index, kind, n, () => stopped)),
      ),
    ).flat();
    try {
      await fault();
    } finally {
      stopped = true;
      await Promise.all(callers);
    }
  }

  /** Resolves when each replica has answered so many more uses: it serves, and everything it needs is there. */
  async usesOnEach(uses: number): Promise<void> {
    const wanted = this.#usesOf.map((sofar) => sofar + uses);
    const deadlineMs = performance.now() + stallMs;
    while (this.#usesOf.some((sofar, i) => sofar < (wanted[i] as number))) {
      if (performance.now() > deadlineMs) throw new Error(`no progress: ${this.#usesOf} of ${wanted}`);
      await delay(1);
    }
  }

  /** Resolves when each replica has answered a call for each key that began after now: nothing is broken any more. */
  async servesAll(): Promise<void> {
    const sinceMs = performance.now();
    const isServed = ({ servedMs }: CountedKey) =>
      this.#usesOf.every((_, replica) => (servedMs[replica] ?? 0) > sinceMs);
    while (!this.#keys.every(isServed)) {
      if (performance.now() > sinceMs + stallMs) throw new Error("a replica does not serve every key");
      await delay(1);
    }
  }

  /** Compares the ledger with what callers were told since the last time. Only while no call is under way. */
  async account(databaseUrl: string): Promise<string[]> {
    const left = await readLedger(databaseUrl);
    const problems: string[] = [];
    for (const key of this.#keys) {
      const { before, acknowledged, unknown } = key;
      const after = left.get(key.keyId) ?? Number.NaN;
      const account = accountFor({ before, after, acknowledged, unanswered: unknown });
      problems.push(...account.problems);
      if (key.isUsedUp && after !== 0) problems.push(`a key with ${after} uses left was refused`);
      this.figures.lost += account.lost;
      this.figures.extra += account.extra;
      // A statement whose caller has given up may still be executed: its use shows in a later account.
      key.unknown -= account.extra;
      key.acknowledged = [];
      key.before = after;
    }
    if (this.figures.doubled > 0) problems.push(`${this.figures.doubled} values were told twice`);
    return problems;
  }

  async #call(index: number, kind: (typeof protocols)[number], n: number, isStopped: () => boolean): Promise<void> {
    let current: { replica: LatchkeyProcess; client: KeysClient } | undefined;
    for (let i = n; !isStopped(); i++) {
      const replica = this.#fleet.replica(index);
      if (this.#fleet.isKilled(replica)) {
        await delay(5);
        continue;
      }
      if (current?.replica !== replica) current = { replica, client: clientOf(kind, replica.baseUrl, testRootKey) };
      await this.#useOnce(index, current, this.#keys[i % this.#keys.length] as CountedKey);
    }
  }

  async #useOnce(
    index: number,
    { replica, client }: { replica: LatchkeyProcess; client: KeysClient },
    key: CountedKey,
  ): Promise<void> {
    const begunMs = performance.now();
    const wasUsedUp = key.isUsedUp;
    try {
      const { valid, code, remaining = -1 } = await client.verifyKey({ key: key.key });
      key.servedMs[index] = begunMs;
      if (!valid) {
        if (code !== "USAGE_EXCEEDED" || remaining !== 0)
          this.oddities.push(`refused as ${code} with ${remaining} left`);
        this.figures.refused++;
        key.isUsedUp = true;
        return;
      }
      if (wasUsedUp) this.oddities.push("a use was granted although the key was used up");
      key.acknowledged.push(remaining);
      this.figures.acknowledged++;
      (this.#usesOf[index] as number)++;
      const told = `${key.keyId} ${remaining}`;
      if (this.#told.has(told)) this.figures.doubled++;
      this.#told.add(told);
    } catch (error) {
      key.unknown++;
      if (this.#fleet.isKilled(replica)) this.figures.unanswered++;
      else if (isUnavailable(error)) this.figures.unavailable++;
      else this.oddities.push(String(error));
      // As clients do that are told to come back later.
      await delay(10);
    }
  }
}

const grpcUnavailable = 14;

function isUnavailable(error: unknown): boolean {
  const { status, code } = error as { status?: number; code?: unknown };
  return status === 503 || code === grpcUnavailable;
}

async function readLedger(databaseUrl: string): Promise<Map<string, number>> {
  const { rows } = await query(databaseUrl, "SELECT subject, remaining FROM counters");
  return new Map(rows.map((row) => [row.subject as string, Number(row.remaining)]));
}
