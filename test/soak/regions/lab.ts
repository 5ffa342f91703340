import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LatchkeyProcess } from "../../support/latchkey-process.ts";
import type { Answer } from "./answers.ts";
import { Caller, type RunningLoad } from "./caller-process.ts";
import type { KeyBody, MadeKeys } from "./make-keys.ts";
import { Network, type Route } from "./network.ts";
import { LabPostgres, type Login } from "./postgres.ts";
import {
  launchCoordinator,
  type Place,
  type Starting,
  startCoordinator,
  startEdge,
  startKeyMaker,
} from "./processes.ts";

/** Round trips between the regions. Coordinators are at the router itself. */
export interface Distances {
  /** From each edge to the coordinators. */
  readonly edgesMs: readonly [number, number, number];
  /** From the coordinators to the ledger. */
  readonly ledgerMs: number;
}

export const usual: Distances = { edgesMs: [1, 40, 80], ledgerMs: 0 };
export const farthest: Distances = { edgesMs: [250, 250, 250], ledgerMs: 160 };

export const edges = ["edge1", "edge2", "edge3"] as const;
export const coordinators = ["coordinator1", "coordinator2"] as const;
export const ledger = "ledger";
export type Edge = (typeof edges)[number];
export type Coordinator = (typeof coordinators)[number];

export interface LabOptions {
  readonly distances: Distances;
  readonly login: Login;
  /** Made before the edges start, so that these have never seen them. By name. */
  readonly keys: ReadonlyMap<string, KeyBody>;
}

const makeKeysProgram = join(import.meta.dirname, "make-keys.ts");
const roundTripProgram = join(import.meta.dirname, "round-trip.ts");

/**
 * Seven network namespaces: a router, Postgres, two coordinators and three edges. Every process is real, and so is TCP
 * between them. Load comes from inside the edges' namespaces.
 */
export class Lab implements AsyncDisposable {
  /** Every answer to every load, in the order in which they were reported. */
  readonly answers: Answer[] = [];
  readonly #network: Network;
  readonly #folder = mkdtempSync(join(tmpdir(), "latchkey-regions-"));
  readonly #login: Login;
  readonly #secrets = new Map<string, { keyId: string; secret: string }>();
  readonly #processes = new Map<string, LatchkeyProcess>();
  readonly #callers: ReadonlyMap<string, Caller>;
  #postgres: LabPostgres | undefined;
  #starts = 0;

  private constructor(network: Network, login: Login) {
    this.#network = network;
    this.#login = login;
    this.#callers = new Map(edges.map((edge) => [edge, new Caller(network, edge, this.answers)]));
  }

  /** Resolves when everything serves. */
  static async start({ distances, login, keys }: LabOptions): Promise<Lab> {
    const network = await Network.start([
      { name: ledger, address: "10.98.0.2", delayMs: distances.ledgerMs / 2 },
      ...coordinators.map((name, i) => ({ name, address: `10.98.0.${11 + i}`, delayMs: 0 })),
      ...edges.map((name, i) => ({ name, address: `10.98.0.${21 + i}`, delayMs: (distances.edgesMs[i] ?? 0) / 2 })),
    ]);
    const lab = new Lab(network, login);
    try {
      lab.#postgres = await LabPostgres.start(network, ledger);
      await lab.#makeKeys(keys);
      await Promise.all(coordinators.map((name) => lab.startCoordinator(name)));
      await Promise.all(edges.map((name) => lab.startEdge(name)));
      return lab;
    } catch (error) {
      await lab[Symbol.asyncDispose]();
      throw error;
    }
  }

  get postgres(): LabPostgres {
    if (this.#postgres === undefined) throw new Error("the lab has no Postgres");
    return this.#postgres;
  }

  processOf(name: Edge | Coordinator): LatchkeyProcess {
    const found = this.#processes.get(name);
    if (found === undefined) throw new Error(`${name} was never started`);
    return found;
  }

  keyIdOf(key: string): string {
    return this.#secretOf(key).keyId;
  }

  async startCoordinator(name: Coordinator): Promise<void> {
    this.#processes.set(name, await startCoordinator(this.#place(name)));
  }

  /** A coordinator whose setting names a host without a Postgres. It may never serve. */
  launchCoordinatorWithoutLedger(name: Coordinator): Starting {
    const wrong = new URL(this.postgres.url(this.#login));
    wrong.port = "5999";
    return launchCoordinator({ ...this.#place(name), databaseUrl: wrong.href });
  }

  async startEdge(name: Edge): Promise<void> {
    this.#processes.set(name, await startEdge(this.#place(name), coordinators));
  }

  /** Tells the process to stop in order, and resolves when it has. */
  async stop(name: Edge | Coordinator): Promise<void> {
    await this.#end(name, "SIGTERM");
  }

  async kill(name: Edge | Coordinator): Promise<void> {
    await this.#end(name, "SIGKILL");
  }

  /** Verifies keys in turn on one edge. Every call is logged in `answers`. */
  load(edge: Edge, keys: readonly string[], perSecond: number, rounds?: number): RunningLoad {
    const named = keys.map((name) => ({ name, secret: this.#secretOf(name).secret }));
    return (this.#callers.get(edge) as Caller).load(named, perSecond, rounds);
  }

  /** From an edge to the ledger, as TCP sees it: the shortest of a few connections. */
  async roundTripMs(edge: Edge): Promise<number> {
    const [file, ...args] = this.#network.inside(edge, process.execPath, [
      roundTripProgram,
      this.#network.addressOf(ledger),
      "5432",
    ]);
    const { stdout } = await promisify(execFile)(file, args);
    return Number(stdout);
  }

  cut(routes: readonly Route[]): Promise<void> {
    return this.#network.cut(routes);
  }

  heal(routes: readonly Route[]): Promise<void> {
    return this.#network.heal(routes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const caller of this.#callers.values()) caller.close();
    try {
      await this.#postgres?.remove();
    } finally {
      // Ends everything that is left inside the hosts, also what is stopped by a signal.
      await this.#network.close();
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  /** By a process of the role `all` beside Postgres, which makes the tables too: however far everything else is. */
  async #makeKeys(bodies: ReadonlyMap<string, KeyBody>): Promise<void> {
    const maker = await startKeyMaker(this.#place(ledger));
    const [file, ...args] = this.#network.inside(ledger, process.execPath, [makeKeysProgram, maker.baseUrl]);
    const made = promisify(execFile)(file, args, { maxBuffer: 1 << 26 });
    made.child.stdin?.end(JSON.stringify(Object.fromEntries(bodies)));
    const keys = JSON.parse((await made).stdout) as MadeKeys;
    for (const [name, key] of Object.entries(keys)) this.#secrets.set(name, key);
    maker.kill("SIGTERM");
    await maker.exited;
  }

  async #end(name: Edge | Coordinator, signal: NodeJS.Signals): Promise<void> {
    const process = this.processOf(name);
    process.kill(signal);
    await process.exited;
  }

  #secretOf(key: string): { keyId: string; secret: string } {
    const found = this.#secrets.get(key);
    if (found === undefined) throw new Error(`there is no key ${key}`);
    return found;
  }

  /** Each start has a folder of its own: no process continues the work of the one before it. */
  #place(host: string): Place {
    const dataDir = join(this.#folder, `${host}-${++this.#starts}`);
    return { network: this.#network, host, dataDir, databaseUrl: this.postgres.url(this.#login) };
  }
}
