import { setTimeout as delay } from "node:timers/promises";
import { slowWaitMaxMs } from "../../../src/domain/deadlines.ts";
import type { SeededRandom } from "../../domain/seeded-random.ts";
import { FaultyProxy } from "../faulty-proxy.ts";
import type { LatchkeyProcess } from "../latchkey-process.ts";
import { PostgresServer } from "../postgres-server.ts";
import { atTestEnd } from "../test-end.ts";
import type { SeenWindow } from "./book.ts";
import { StrictCluster } from "./cluster.ts";
import { type KeyDemand, StrictLoad } from "./load.ts";

/** Something that breaks, and how it is mended. */
export interface Fault {
  readonly name: string;
  begin(): Promise<unknown> | unknown;
  /** How long it stays broken. */
  readonly ms: number;
  end(): Promise<unknown> | unknown;
  /** While it is broken no replica can get permits: held ones expire with their windows. */
  readonly cutsOffLedger?: boolean;
}

export interface TrialReport {
  readonly fault: string;
  readonly problems: readonly string[];
  readonly figures: Record<string, number>;
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export type StartedTrial = Awaited<ReturnType<typeof startTrial>>;

const probeMs = 50;
const recoveryMs = 60_000;

/** A cluster with a Postgres of its own, which its coordinators reach over a link that can be broken; under a load. */
export async function startTrial(options: {
  readonly edges: number;
  readonly keys: readonly KeyDemand[];
  readonly underWayMax: number;
  readonly patient?: boolean;
  readonly seed?: number;
}) {
  const { edges, keys, underWayMax, patient = false, seed } = options;
  const postgres = await PostgresServer.start();
  atTestEnd(() => postgres.remove());
  const ledgerLink = await FaultyProxy.start(postgres.port);
  const urls = { databaseUrl: postgres.url(), ledgerUrl: postgres.url(undefined, ledgerLink.port) };
  const cluster = await StrictCluster.start({ edges, coordinators: 2, patient, ...urls });
  const load = new StrictLoad(keys, await cluster.replicas(keys), underWayMax, seed);
  await load.warmUp();
  return { postgres, ledgerLink, cluster, load, trial: new StrictTrial(load, cluster) };
}

/** Breaks and mends things under a load, and says what was wrong with its answers meanwhile. */
export class StrictTrial {
  readonly #load: StrictLoad;
  readonly #cluster: Pick<StrictCluster, "size" | "probe">;
  /** The longest window: what is held cannot outlive it. */
  readonly #windowMs: number;
  /** When something was broken, by the wall's clock: windows of that time may stay short. */
  readonly #disturbed: Span[] = [];

  constructor(load: StrictLoad, cluster: Pick<StrictCluster, "size" | "probe">) {
    this.#load = load;
    this.#cluster = cluster;
    this.#windowMs = Math.max(...load.book.rules.map(({ durationMs }) => durationMs));
  }

  /** Only while the load runs. */
  async run(fault: Fault): Promise<TrialReport> {
    const { book } = this.#load;
    const before = { ...book.counts, waited: book.unavailableAfterMs.length };
    const fromMs = Date.now();
    await fault.begin();
    const problems: string[] = [];
    if (fault.cutsOffLedger) problems.push(...(await this.#waitWithoutLedger(fault.ms, before.waited)));
    else await delay(fault.ms);
    await fault.end();
    const mendedMs = performance.now();
    problems.push(...(await this.#recover(mendedMs)));
    const recoveredMs = performance.now() - mendedMs;
    // Windows that were open meanwhile may have lost permits: those after them may not.
    const disturbed = { fromMs: fromMs - this.#windowMs, toMs: Date.now() };
    this.#disturbed.push(disturbed);
    const short = book.short().filter((window) => openedIn(disturbed, window));
    const count = (name: keyof typeof book.counts) => book.counts[name] - before[name];
    const figures = {
      admitted: count("admitted"),
      limited: count("limited"),
      unavailable: count("unavailable"),
      unanswered: count("unanswered"),
      short: short.reduce((sum, { rule, admitted }) => sum + rule.limit - admitted, 0),
      recoveredMs: Math.round(recoveredMs),
    };
    return { fault: fault.name, problems: [...problems, ...book.problems()], figures };
  }

  /** Windows that stayed short although nothing was broken while they were open. */
  shortUndisturbed(): SeenWindow[] {
    const isDisturbed = (window: SeenWindow) => this.#disturbed.some((span) => openedIn(span, window));
    return this.#load.book.short().filter((window) => !isDisturbed(window));
  }

  /** After a window's length without the ledger no request passes, and every caller gets an error in time. */
  async #waitWithoutLedger(ms: number, waitedBefore: number): Promise<string[]> {
    const { book } = this.#load;
    const brokenMs = performance.now();
    const probes: number[] = [];
    while (performance.now() < brokenMs + ms) {
      const probedMs = performance.now();
      await this.#cluster.probe();
      probes.push(performance.now() - probedMs);
      await delay(probeMs);
    }
    const lastMs = Math.max(0, ...book.lastPassedMs.values()) - brokenMs;
    const waitMs = most(book.unavailableAfterMs.slice(waitedBefore));
    const problems: string[] = [];
    if (lastMs > this.#windowMs) problems.push(`a request passed ${Math.round(lastMs)} ms after the ledger was gone`);
    if (waitMs === 0) problems.push("no caller was told that it cannot be decided");
    // Time in which an edge stood still does not count for it. A busy machine is late with the caller and the answer, too.
    const allowedMs = slowWaitMaxMs + 4 * most(probes);
    if (waitMs > allowedMs) problems.push(`it took ${Math.round(waitMs)} ms of ${Math.round(allowedMs)} to answer 503`);
    return problems;
  }

  async #recover(sinceMs: number): Promise<string[]> {
    const { lastPassedMs } = this.#load.book;
    const serves = (replica: number) => (lastPassedMs.get(replica) ?? 0) > sinceMs;
    const untilMs = sinceMs + recoveryMs;
    const all = Array.from({ length: this.#cluster.size }, (_, replica) => replica);
    while (performance.now() < untilMs) {
      if (all.every(serves)) return [];
      await delay(20);
    }
    return all.filter((replica) => !serves(replica)).map((replica) => `replica ${replica} did not recover`);
  }
}

function openedIn({ fromMs, toMs }: Span, { resetMs, rule }: SeenWindow): boolean {
  const openedMs = resetMs - rule.durationMs;
  return openedMs >= fromMs && openedMs <= toMs;
}

/** All but a twentieth are at most this. */
function most(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? 0;
}

/** An edge killed, and another process put in its place. */
export function killEdge({ cluster, load }: StartedTrial, edge: number): Fault {
  return {
    name: `edge ${edge} is killed`,
    ms: 1200,
    async begin() {
      await cluster.killEdge(edge);
      load.book.killed(edge);
    },
    end: () => cluster.replaceEdge(edge),
  };
}

/** Processes killed, or standing still. */
export function processFaults({ cluster, postgres }: StartedTrial): Fault[] {
  return [
    { name: "an edge stands still", ms: 1500, ...paused(() => cluster.edge(1)) },
    {
      name: "a coordinator is killed",
      ms: 500,
      begin: () => cluster.coordinator(0).kill("SIGKILL"),
      end: () => cluster.replaceCoordinator(0),
    },
    { name: "a coordinator stands still", ms: 2500, ...paused(() => cluster.coordinator(1)) },
    {
      name: "the ledger is killed",
      ms: 1800,
      cutsOffLedger: true,
      begin: () => postgres.kill(),
      end: () => postgres.up(),
    },
    {
      name: "the ledger stands still",
      ms: 1800,
      cutsOffLedger: true,
      begin: () => postgres.pause(),
      end: () => postgres.resume(),
    },
  ];
}

/** Links that fall silent both ways, hold answers back, or break when an answer comes. */
export function linkFaults({ cluster, ledgerLink }: StartedTrial, random: SeededRandom): Fault[] {
  const all = cluster.links.flat();
  const ofOneEdge = cluster.links[0] as FaultyProxy[];
  const longMs = 1800;
  const cutting = (probability: number) => () => (random.chance(probability) ? "cut" : "pass") as "cut" | "pass";
  return [
    { name: "one edge reaches no coordinator", ms: 1500, ...silent(ofOneEdge) },
    { name: "no edge reaches a coordinator", ms: longMs, cutsOffLedger: true, ...silent(all) },
    { name: "answers of coordinators are held", ms: longMs, cutsOffLedger: true, ...replying(all, () => "stall") },
    { name: "coordinators do not reach the ledger", ms: longMs, cutsOffLedger: true, ...silent([ledgerLink]) },
    {
      name: "answers of the ledger are held",
      ms: longMs,
      cutsOffLedger: true,
      ...replying([ledgerLink], () => "stall"),
    },
    { name: "answers of the ledger are cut after the commit", ms: 2500, ...replying([ledgerLink], cutting(0.1)) },
    { name: "answers of coordinators are cut", ms: 2000, ...replying(all, cutting(0.05)) },
  ];
}

type Breaking = Pick<Fault, "begin" | "end">;

/** Asks for the process when it is needed: another one may stand in its place by then. */
function paused(process: () => LatchkeyProcess): Breaking {
  return { begin: () => process().kill("SIGSTOP"), end: () => process().kill("SIGCONT") };
}

function silent(links: readonly FaultyProxy[]): Breaking {
  return {
    begin() {
      for (const link of links) link.silent = true;
    },
    end: () => heal(links),
  };
}

function replying(links: readonly FaultyProxy[], onReply: FaultyProxy["onReply"]): Breaking {
  return {
    begin() {
      for (const link of links) link.onReply = onReply;
    },
    end: () => heal(links),
  };
}

function heal(links: readonly FaultyProxy[]): void {
  for (const link of links) {
    link.onReply = () => "pass";
    link.silent = false;
    // What was held back never comes.
    link.cutAll();
  }
}
