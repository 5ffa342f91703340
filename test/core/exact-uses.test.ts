import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { Coordinators } from "../../src/core/remote/coordinators.ts";
import { RemoteUsage } from "../../src/core/remote/remote-usage.ts";
import type { Question, ReceivedAnswer } from "../../src/core/wire.ts";
import { metaBytesMax } from "../../src/domain/meta.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { deadlineIn } from "../support/deadline-in.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { createKey } from "../support/manage.ts";
import { managementCall, realKey } from "./core-cases.ts";
import { newStore, startTestCoordinator, type TestCoordinator } from "./test-coordinator.ts";

const patient = { timeout: 60_000, interval: 5 };
const balance = 100_000;

/** The control: makes a charge again when its answer was lost, as a link would that repeats what it has sent. */
class RepeatingCoordinators extends Coordinators {
  override async call(key: string, question: Question): Promise<ReceivedAnswer> {
    return super.call(key, question).catch(async () => {
      await vi.waitFor(() => expect(this.hasLedger).toBe(true), patient);
      return this.call(key, question);
    });
  }
}

function edgeOf(addresses: readonly string[], Kind = Coordinators) {
  const log = createLog("error", () => {});
  const coordinators = new Kind(addresses, { onRecall: () => {}, clock: systemClock, log });
  onTestFinished(() => coordinators.close());
  return {
    coordinators,
    usage: new RemoteUsage({ coordinators, waitingRoom: new WaitingRoom(50_000), newDeadline: () => deadlineIn(5000) }),
  };
}

/** What became of uses, as their callers know it. */
class Book {
  made = 0;
  unknown = 0;
  readonly remaining: number[] = [];
  readonly #underWay = new Set<Promise<void>>();
  readonly #usage: RemoteUsage;
  readonly #keyId: string;

  constructor(usage: RemoteUsage, keyId: string) {
    this.#usage = usage;
    this.#keyId = keyId;
  }

  get underWay(): number {
    return this.#underWay.size;
  }

  use(times: number): void {
    for (let i = 0; i < times; i++) {
      this.made++;
      const settled = this.#usage
        .spend([this.#keyId], 1)
        .then(
          (spend) => void (spend.outcome === "spent" && this.remaining.push(spend.remaining)),
          () => void this.unknown++,
        )
        .finally(() => this.#underWay.delete(settled));
      this.#underWay.add(settled);
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** What is wrong, compared with what the ledger has charged. `lostMax`: uses whose answers can have been lost. */
  violations(charged: number, lostMax: number): string[] {
    const acknowledged = this.remaining.length;
    const found: string[] = [];
    if (acknowledged + this.unknown !== this.made) found.push("a use has no outcome");
    if (new Set(this.remaining).size !== acknowledged) found.push("two uses have the same number");
    if (charged < acknowledged) found.push("an acknowledged use is lost");
    if (charged > acknowledged + this.unknown) found.push("a use was charged twice");
    if (this.unknown > lostMax) found.push("more is unknown than was under way");
    return found;
  }
}

const wantedOf = ({ charged }: TestCoordinator) => charged.reduce((sum, { count }) => sum + count, 0);

async function chargedOf(store: Store, digest: string): Promise<number> {
  return balance - ((await store.keys.findByDigest(digest))?.counter?.remaining ?? Number.NaN);
}

/**
 * Uses a counter while the link to its coordinator is cut again and again, each time with uses under way. Another
 * coordinator can be reached all the time: what is made again goes there at once.
 */
async function useOverBrokenLink(Kind: typeof Coordinators) {
  const key = realKey({ remaining: balance });
  const store = newStore();
  await createKey(store.management, key);
  const two = [await startTestCoordinator({ store }), await startTestCoordinator({ store })] as const;
  const networks = [await FaultyProxy.start(two[0].port), await FaultyProxy.start(two[1].port)] as const;
  const addresses = networks.map(({ port }) => `127.0.0.1:${port}`);
  const { coordinators, usage } = edgeOf(addresses, Kind);
  const areUp = () => expect(coordinators.links.every(({ link }) => link.hasLedger)).toBe(true);
  const at = coordinators.preferred(key.id, () => true)?.address === addresses[0] ? 0 : 1;
  const [coordinator, network] = [two[at], networks[at]];
  const book = new Book(usage, key.id);
  let lostMax = 0;
  const cut = () => {
    lostMax += book.underWay;
  };
  for (let round = 0; round < 12; round++) {
    await vi.waitFor(areUp, patient);
    const before = wantedOf(coordinator);
    if (round % 3 === 0) {
      // The link breaks whether or not the charges have arrived.
      book.use(20);
      await nextTurn();
      cut();
      network.cutAll();
    } else {
      // The ledger has charged, and the answer is lost.
      network.onReply = () => {
        if (wantedOf(coordinator) === before) return "pass";
        network.onReply = () => "pass";
        cut();
        return "cut";
      };
      for (let wave = 0; wave < 3; wave++) {
        book.use(7);
        await nextTurn();
      }
    }
    await book.settled();
  }
  await vi.waitFor(areUp, patient);
  book.use(5);
  await book.settled();
  const charged = await chargedOf(store, key.secretDigest);
  return { book, charged, lostMax };
}

describe("uses over a link that breaks", () => {
  it("are all acknowledged and charged, or unknown, and never charged twice", async () => {
    const { book, charged, lostMax } = await useOverBrokenLink(Coordinators);
    expect(book.violations(charged, lostMax)).toEqual([]);
    expect(book.unknown).toBeGreaterThan(0);
    // The faults were real: some uses whose answers were lost had been charged.
    expect(charged).toBeGreaterThan(book.remaining.length);
  });

  it("would be charged twice, as a control, if they were sent again on the next connection", async () => {
    const { book, charged, lostMax } = await useOverBrokenLink(RepeatingCoordinators);
    expect(book.violations(charged, lostMax)).toEqual(["a use was charged twice"]);
  });

  it("go to another coordinator if they were never written, and are charged once", async () => {
    const key = realKey({ remaining: balance });
    const store = newStore();
    await createKey(store.management, key);
    const two = [await startTestCoordinator({ store }), await startTestCoordinator({ store })] as const;
    const networks = [await FaultyProxy.start(two[0].port), await FaultyProxy.start(two[1].port)] as const;
    const { coordinators, usage } = edgeOf(networks.map(({ port }) => `127.0.0.1:${port}`));
    await vi.waitFor(() => expect(coordinators.links.every(({ link }) => link.hasLedger)).toBe(true), patient);
    const first = coordinators.preferred(key.id, (link) => link.hasLedger);
    const at = first?.address === `127.0.0.1:${networks[0].port}` ? 0 : 1;
    networks[at].holding = "both";
    // So much that the connection takes no more, and the charges after it stay in this process.
    for (let i = 0; i < 100; i++) {
      first?.link.call(managementCall({ body: new Uint8Array(metaBytesMax) })).catch(() => {});
    }
    await nextTurn();
    const book = new Book(usage, key.id);
    book.use(30);
    await book.settled();
    expect(book.violations(30, 0)).toEqual([]);
    networks[at].holding = undefined;
    await vi.waitFor(() => expect(first?.link.hasLedger).toBe(true), patient);
    expect([two[at].charged, two[1 - at]?.charged]).toEqual([[], [{ subject: key.id, cost: 1, count: 30 }]]);
    expect(await chargedOf(store, key.secretDigest)).toBe(30);
  });

  it("are all acknowledged while a coordinator stops in an orderly way", async () => {
    const key = realKey({ remaining: balance });
    const store = newStore();
    await createKey(store.management, key);
    const two = [await startTestCoordinator({ store }), await startTestCoordinator({ store })] as const;
    const { coordinators, usage } = edgeOf(two.map(({ address }) => address));
    await vi.waitFor(() => expect(coordinators.links.every(({ link }) => link.hasLedger)).toBe(true), patient);
    const preferred = coordinators.preferred(key.id, () => true)?.address === two[0].address ? two[0] : two[1];
    const book = new Book(usage, key.id);
    const useForTurns = async (turns: number) => {
      for (let turn = 0; turn < turns; turn++) {
        book.use(3);
        await nextTurn();
      }
    };
    await useForTurns(50);
    const stopped = preferred.streams.stop(5000).then(() => preferred.stop());
    while (preferred.charged.length > 0) {
      preferred.charged.length = 0;
      await useForTurns(100);
    }
    await Promise.all([stopped, book.settled()]);
    await useForTurns(10);
    await book.settled();
    expect([book.unknown, book.violations(await chargedOf(store, key.secretDigest), 0)]).toEqual([0, []]);
    expect(await chargedOf(store, key.secretDigest)).toBe(book.made);
  });
});
