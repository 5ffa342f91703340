import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { WindowNews } from "../../src/domain/shared-window.ts";
import type { MemoryHub } from "../../src/ratelimit/local/window-hub.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import { HubModel } from "./hub-model.ts";
import { type Product, type SentReport, type SimulatedKey, SimulatedReplica } from "./simulated-replica.ts";
import { Violation } from "./violation.ts";

export type { Product } from "./simulated-replica.ts";

export interface Simulation {
  /** How often each kind of step was made. */
  readonly steps: ReadonlyMap<string, number>;
  /** The first broken promise; undefined when all were kept. */
  readonly violation: string | undefined;
}

/** Runs replicas of the product against their models, through everything that can go wrong between them. */
export async function simulate(seed: number, product: Product, folder: string): Promise<Simulation> {
  const world = new World(seed, product, folder);
  try {
    await world.run();
    return { steps: world.steps, violation: undefined };
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    return { steps: world.steps, violation: `seed ${seed}: ${error.message}\n${world.trace.slice(-20).join("\n")}` };
  }
}

/** The kinds of steps, and how often each is made among the others. */
const weights = {
  request: 40,
  time: 16,
  settle: 14,
  sync: 16,
  report: 16,
  deliver: 13,
  reply: 13,
  sweep: 4,
  "set the clock": 3,
  "follow the clock": 2,
  "cut off or rejoin": 3,
  forget: 2,
  restart: 5,
  crash: 1,
  "change the rule": 1,
};
type StepKind = keyof typeof weights;

export const stepKinds = Object.keys(weights) as StepKind[];
const steps = stepKinds.flatMap((kind) => Array<StepKind>(weights[kind]).fill(kind));
const stepsPerRun = 150;
const durationsMs = [50, 200, 1000];

class World {
  readonly steps = new Map<string, number>();
  readonly trace: string[] = [];
  readonly #random: SeededRandom;
  readonly #replicas: SimulatedReplica[];
  readonly #keys: readonly SimulatedKey[];
  readonly #newHub: () => MemoryHub;
  #hub: MemoryHub;
  readonly #hubModel = new HubModel();
  readonly #newReplica: () => SimulatedReplica;
  #nowMs = 1_000_000;
  #reports: SentReport[] = [];
  #replies: { readonly sent: SentReport; readonly news: WindowNews }[] = [];

  constructor(seed: number, product: Product, folder: string) {
    const random = new SeededRandom(seed);
    this.#random = random;
    this.#newHub = () => new product.MemoryHub({ nowMs: () => this.#nowMs, windowsMax: 1000, freeStandingMax: 0 });
    this.#hub = this.#newHub();
    let gens = 0;
    let names = 0;
    const slotsMax = random.pick([1, 2, 8]);
    const nextGen = () => ++gens;
    this.#newReplica = () => new SimulatedReplica({ product, name: `r${++names}`, slotsMax, nextGen, random, folder });
    this.#replicas = Array.from({ length: random.integer(1, 4) }, this.#newReplica);
    this.#keys = Array.from({ length: random.integer(1, 3) }, (_, i) => ({
      id: `k${i + 1}`,
      rule: this.#anyRule(),
      home: random.chance(0.3) ? random.integer(0, this.#replicas.length - 1) : undefined,
    }));
  }

  async run(): Promise<void> {
    for (let i = 0; i < stepsPerRun; i++) {
      const kind = this.#random.pick(steps);
      this.steps.set(kind, (this.steps.get(kind) ?? 0) + 1);
      this.trace.push(kind);
      await this.#do[kind]();
      this.#check();
    }
    await this.#quieten();
    await this.#useOneByOne();
  }

  readonly #do: Readonly<Record<StepKind, () => void | Promise<void>>> = {
    request: () => this.#request(),
    time: () => this.#advance(this.#anyWait()),
    settle: () => this.#anyReplica().settle(this.#random),
    sync: () => this.#sync(this.#anyReplica(), this.#random.pick(this.#keys)),
    report: () => this.#report(),
    deliver: () => this.#deliver(),
    reply: () => this.#reply(),
    sweep: () => this.#anyReplica().sweep(),
    "set the clock": () => this.#anyReplica().stepWallClock(this.#anyClockStep()),
    "follow the clock": () => this.#anyReplica().followWallClock(),
    "cut off or rejoin": () => this.#cutOff(),
    forget: () => this.#forget(),
    restart: () => this.#restart(),
    crash: () => this.#crash(),
    "change the rule": () => this.#changeRule(),
  };

  #check(): void {
    for (const [i, replica] of this.#replicas.entries()) {
      replica.check(this.#keys.filter(({ home }) => home === undefined || home === i));
    }
  }

  #request(): void {
    const key = this.#random.pick(this.#keys);
    const replica = key.home === undefined ? this.#anyReplica() : this.#replicaAt(key.home);
    const times = this.#random.chance(0.1) ? key.rule.limit + 1 : 1;
    for (let i = 0; i < times; i++) {
      const cost = this.#random.pick([1, 1, 1, 2, 3, 5]);
      this.#note(`${replica.name} ${key.id} at ${cost} admitted: ${replica.take(key, cost)}`);
    }
  }

  #report(): void {
    const replica = this.#anyReplica();
    const sent = replica.report(this.#random.pick(this.#keys));
    if (sent === undefined || replica.isCutOff || this.#random.chance(0.1)) return;
    this.#note(`${replica.name} ${sent.key.id} ${JSON.stringify(sent.report)}`);
    this.#reports.push(sent);
  }

  /** One of the reports under way arrives: any of them, however old. */
  async #deliver(): Promise<void> {
    const sent = this.#takeOut(this.#reports);
    if (sent === undefined) return;
    const news = await this.#merge(sent);
    if (!this.#random.chance(0.1)) this.#replies.push({ sent, news });
  }

  #reply(): void {
    const reply = this.#takeOut(this.#replies);
    if (reply === undefined) return;
    const replica = this.#replicas.find(({ name }) => name === reply.sent.report.replica);
    if (replica === undefined || replica.isCutOff) return;
    this.#note(`${replica.name} ${reply.sent.key.id} to ${reply.sent.report.gen} ${JSON.stringify(reply.news)}`);
    replica.hear(reply.sent, reply.news);
  }

  async #merge({ key, report }: SentReport): Promise<WindowNews> {
    const { news } = await this.#hub.exchange([{ subject: key.id, report }]);
    if (news[0] === undefined) throw new Violation("the hub gave no answer");
    this.#hubModel.check(key.id, report, news[0], this.#nowMs);
    return news[0];
  }

  #cutOff(): void {
    const replica = this.#anyReplica();
    replica.isCutOff = !replica.isCutOff;
  }

  #forget(): void {
    this.#hub = this.#newHub();
    this.#hubModel.forget();
  }

  #restart(): void {
    const replica = this.#anyReplica();
    const goneMs = this.#anyWait();
    this.#advance(goneMs, replica);
    replica.restart(goneMs, this.#random.chance(0.5) ? 0 : this.#anyClockStep());
    this.#note(`${replica.name} gone for ${goneMs}`);
  }

  /** As after `kill -9`: another replica takes its place. Not the home of a key, which would no longer be alone. */
  #crash(): void {
    const i = this.#random.integer(0, this.#replicas.length - 1);
    if (!this.#keys.some(({ home }) => home === i)) this.#replicas[i] = this.#newReplica();
  }

  #changeRule(): void {
    this.#random.pick(this.#keys).rule = this.#anyRule();
  }

  #advance(ms: number, except?: SimulatedReplica): void {
    this.#nowMs += ms;
    for (const replica of this.#replicas) if (replica !== except) replica.advance(ms);
    this.#note(`${ms} ms later`);
  }

  /** All messages arrive, so that all replicas know the same. */
  async #quieten(): Promise<void> {
    for (const replica of this.#replicas) {
      replica.isCutOff = false;
      replica.settleAll(this.#random);
    }
    while (this.#reports.length > 0) await this.#deliver();
    while (this.#replies.length > 0) this.#reply();
    // The guess at what the others do meanwhile halves with each of these.
    for (let i = 0; i < 12; i++) {
      this.#advance(1);
      await this.#syncAll();
    }
    this.#check();
    for (const key of this.#keys.filter(({ home }) => home === undefined)) {
      for (const replica of this.#replicas) replica.checkExactly(key);
      this.#checkAgreement(key);
      for (const replica of this.#replicas) replica.take(key);
    }
    this.#check();
  }

  #checkAgreement(key: SimulatedKey): void {
    const known = this.#replicas.map((replica) => replica.sharedUses(key)).filter((shared) => shared !== undefined);
    for (const one of known) {
      const others = known.reduce((sum, { uses }) => sum + uses, 0) - one.uses;
      if (one.gen !== known[0]?.gen) throw new Violation(`the replicas count ${key.id} in different windows`);
      if (one.others < others)
        throw new Violation(`${one.others} of the others' ${others} uses of ${key.id} are known`);
    }
  }

  /** One replica alone gets the whole limit of a new window; each of the others stops after its first question. */
  async #useOneByOne(): Promise<void> {
    this.#advance(3 * Math.max(...durationsMs));
    for (const replica of this.#replicas) replica.sweep();
    // One: the smallest table has no more places.
    for (const key of this.#keys.slice(0, 1)) {
      for (const [i, replica] of this.#replicas.entries()) {
        if (key.home !== undefined && key.home !== i) continue;
        let admitted = 0;
        for (let times = 0; times < key.rule.limit + 1; times++) {
          if (replica.take(key) === true) admitted++;
          replica.settleAll(new SeededRandom(1));
          await this.#syncAll();
        }
        this.#note(`${replica.name} ${key.id}: ${admitted}`);
      }
      this.#check();
    }
  }

  async #syncAll(): Promise<void> {
    for (const key of this.#keys) {
      for (const replica of this.#replicas) {
        await this.#sync(replica, key);
      }
    }
  }

  /** A report and its answer, with nothing in between: the usual case. */
  async #sync(replica: SimulatedReplica, key: SimulatedKey): Promise<void> {
    const sent = replica.isCutOff ? undefined : replica.report(key);
    if (sent !== undefined) replica.hear(sent, await this.#merge(sent));
  }

  /** Takes one out in any order, and at times leaves it there, to arrive again. */
  #takeOut<T>(list: T[]): T | undefined {
    if (list.length === 0) return undefined;
    const i = this.#random.integer(0, list.length - 1);
    return this.#random.chance(0.15) ? list[i] : list.splice(i, 1)[0];
  }

  #anyReplica(): SimulatedReplica {
    return this.#random.pick(this.#replicas);
  }

  #replicaAt(i: number): SimulatedReplica {
    return this.#replicas[i] as SimulatedReplica;
  }

  #anyRule(): RateLimit {
    return { mode: "local", limit: this.#random.pick([1, 2, 4, 8]), durationMs: this.#random.pick(durationsMs) };
  }

  /** Often to the very moment at which a window ends, or to just before it. */
  #anyWait(): number {
    const endInMs = this.#anyReplica().nextEndInMs(this.#random.pick(this.#keys));
    if (endInMs !== undefined && this.#random.chance(0.2)) return Math.max(0, endInMs - this.#random.pick([0, 0.25]));
    return this.#random.integer(0, this.#random.pick([4, 40, 400, 1600])) / 4;
  }

  #anyClockStep(): number {
    return this.#random.integer(-10_000, 10_000);
  }

  #note(what: string): void {
    this.trace.push(`  ${what}`);
  }
}
