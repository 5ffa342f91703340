import { vi } from "vitest";
import type { FeedNews, FeedPosition } from "../../../src/store/change-feed.ts";
import { FeedRelay, type FeedRelayDeps } from "../../../src/store/feed-relay.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { TestClock } from "../../support/test-clock.ts";
import { type PendingRead, SimulatedFeed, SimulatedLedger } from "./simulated-ledger.ts";

export type Relay = Pick<FeedRelay, "onNews" | "read">;
export type CreateRelay = (deps: FeedRelayDeps) => Relay;

/** How often each happened, so that a test can see that the runs got there. */
export interface ModelFigures {
  readonly [what: string]: number;
}

const steps = 300;
/** Small, so that each is reached in most runs. */
const bounds = { readingsMax: 4, changesMax: 8, answerMax: 3, storeReadsMax: 2 };

/**
 * One random run: two coordinators read the ledger's feed, each for its relay, and three fronts read the relays and move
 * between them. Throws if a front takes news for current and did not get a change that was committed before.
 * Needs fake timers.
 */
export async function runRelayModel(seed: number, createRelay: CreateRelay): Promise<ModelFigures> {
  const world = new World(seed, createRelay);
  for (let step = 0; step < steps; step++) {
    world.step();
    await nextTurn();
    if (world.mistake !== undefined) throw new Error(`seed ${seed}, step ${step}: ${world.mistake}`);
  }
  vi.clearAllTimers();
  return world.figures;
}

interface Coordinator {
  readonly feed: SimulatedFeed;
  readonly relay: Relay;
  position: FeedPosition | undefined;
  isReading: boolean;
}

interface Front {
  coordinator: Coordinator;
  position: FeedPosition | undefined;
  /** The read under way. An answer to another one was lost. */
  asked: object | undefined;
  readonly reported: Set<string>;
  /** When it last received that everything has changed. */
  everythingAtMs: number;
}

class World {
  readonly figures: Record<string, number> = {};
  mistake: string | undefined;
  readonly #random: SeededRandom;
  readonly #createRelay: CreateRelay;
  readonly #clock = new TestClock();
  readonly #ledger = new SimulatedLedger();
  readonly #coordinators: Coordinator[];
  readonly #fronts: Front[];

  constructor(seed: number, createRelay: CreateRelay) {
    this.#random = new SeededRandom(seed);
    this.#createRelay = createRelay;
    this.#coordinators = [this.#startCoordinator(), this.#startCoordinator()];
    this.#fronts = Array.from({ length: 3 }, () => ({
      coordinator: this.#random.pick(this.#coordinators),
      position: undefined,
      asked: undefined,
      reported: new Set<string>(),
      everythingAtMs: -1,
    }));
  }

  /** Each at its own moment. */
  step(): void {
    this.#clock.advance(1);
    const coordinator = this.#random.pick(this.#coordinators);
    const front = this.#random.pick(this.#fronts);
    const happenings: readonly [number, () => void][] = [
      [6, () => this.#ledger.begin()],
      [6, () => this.#endTransaction()],
      [30, () => this.#pickRead(coordinator, (read) => coordinator.feed.advance(read))],
      [12, () => void this.#readFeed(coordinator)],
      [25, () => void this.#ask(front)],
      [3, () => this.#move(front)],
      // Its answer is lost.
      [1, () => this.#forgetRead(front)],
      [1, () => this.#pickRead(coordinator, (read) => coordinator.feed.fail(read))],
      [0.5, () => this.#restart(coordinator)],
      [0.5, () => this.#ledger.failOver(this.#random.integer(0, 6))],
      [0.5, () => this.#ledger.tidy()],
      [0.5, () => this.#passSecond()],
    ];
    let at = (this.#random.integer(0, 9999) / 10_000) * happenings.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, happen] of happenings) {
      at -= weight;
      if (at >= 0) continue;
      happen();
      return;
    }
  }

  #endTransaction(): void {
    if (this.#ledger.open.length === 0) return;
    const transaction = this.#random.pick(this.#ledger.open);
    if (this.#random.chance(0.1)) this.#ledger.abort(transaction);
    else this.#ledger.commit(transaction, this.#clock.monotonicMs());
  }

  #pickRead({ feed }: Coordinator, use: (read: PendingRead) => void): void {
    if (feed.pending.length > 0) use(this.#random.pick(feed.pending));
  }

  #passSecond(): void {
    this.#clock.advance(1000);
    vi.advanceTimersByTime(1000);
  }

  #startCoordinator(): Coordinator {
    const clock = this.#clock;
    const feed = new SimulatedFeed(this.#ledger, () => clock.monotonicMs());
    return { feed, relay: this.#createRelay({ clock, feed, bounds }), position: undefined, isReading: false };
  }

  /** As `ChangeFollower` does it. */
  async #readFeed(coordinator: Coordinator): Promise<void> {
    if (coordinator.isReading) return;
    coordinator.isReading = true;
    const askedAtMs = this.#clock.monotonicMs();
    try {
      const news = await coordinator.feed.read(coordinator.position);
      coordinator.position = news.position;
      coordinator.relay.onNews(news, askedAtMs - news.ageMs);
    } catch {
      this.#count("failed reading");
    }
    coordinator.isReading = false;
  }

  #restart(coordinator: Coordinator): void {
    const next = this.#startCoordinator();
    this.#coordinators[this.#coordinators.indexOf(coordinator)] = next;
    for (const front of this.#fronts) {
      if (front.coordinator !== coordinator) continue;
      this.#forgetRead(front);
      front.coordinator = next;
    }
  }

  #move(front: Front): void {
    this.#forgetRead(front);
    front.coordinator = this.#coordinators.find((other) => other !== front.coordinator) as Coordinator;
  }

  #forgetRead(front: Front): void {
    front.asked = undefined;
  }

  async #ask(front: Front): Promise<void> {
    if (front.asked !== undefined) return;
    const asked = {};
    front.asked = asked;
    const askedAtMs = this.#clock.monotonicMs();
    try {
      const news = await front.coordinator.relay.read(front.position);
      if (front.asked === asked) this.#take(front, news, askedAtMs - news.ageMs);
    } catch {
      this.#count("failed read of a front");
    }
    if (front.asked === asked) front.asked = undefined;
  }

  #take(front: Front, { position, changed }: FeedNews, currentAtMs: number): void {
    this.#count(changed === "everything" ? "everything" : changed.length === 0 ? "nothing" : "changes");
    if (changed === "everything") front.everythingAtMs = this.#clock.monotonicMs();
    else for (const change of changed) if (change.kind === "key") front.reported.add(change.keyId);
    front.position = position;
    const missed = this.#ledger.commits.find(
      ({ keyId, atMs }) =>
        keyId !== undefined && atMs <= currentAtMs && atMs > front.everythingAtMs && !front.reported.has(keyId),
    );
    if (missed !== undefined)
      this.mistake = `a front takes news for current as of ${currentAtMs} without ${missed.keyId}, committed at ${missed.atMs}`;
  }

  #count(what: string): void {
    this.figures[what] = (this.figures[what] ?? 0) + 1;
  }
}

/** The relay as it is. */
export const createRelay: CreateRelay = (deps) => new FeedRelay(deps);
