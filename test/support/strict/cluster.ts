import { setTimeout as delay } from "node:timers/promises";
import type { LatchkeyClient } from "../../../src/sdk/index.ts";
import { type ClientKind, latchkeyOf } from "../clients.ts";
import { FaultyProxy } from "../faulty-proxy.ts";
import { type LatchkeyProcess, startLatchkey } from "../latchkey-process.ts";
import { type LimitAnswer, type Limited, makeLimited } from "../limited.ts";
import { readMetric } from "../read-metric.ts";
import { testInternalSecret, testRootKey } from "../test-root-key.ts";
import type { StrictAnswer, StrictRule } from "./book.ts";
import type { StrictReplica } from "./load.ts";

const grpcUnavailable = 14;
const kinds: readonly ClientKind[] = ["sdk", "grpc"];

export interface ClusterOptions {
  readonly edges: number;
  readonly coordinators: number;
  readonly databaseUrl: string;
  /** Where coordinators reach the ledger, if by another way: one for all, or one for each. */
  readonly ledgerUrl?: string | readonly string[];
  /** However busy the machine is, no coordinator gives up on the ledger: what it gave up on would be lost permits. */
  readonly patient?: boolean;
  /** Added to the environment of each coordinator. */
  readonly coordinatorEnvironment?: Record<string, string>;
  /** Added to the environment of each edge. */
  readonly edgeEnvironment?: (edge: number) => Record<string, string>;
  /** Other programs than the one that was built: broken ones, which a test must notice. */
  readonly programs?: { readonly edge?: Program; readonly coordinator?: Program };
  /** Where it is not to end with the test that starts it. */
  readonly atEnd?: (undo: () => void) => void;
}

type Program = readonly [string, ...string[]];

/** Edges and coordinators, each a process of its own, and a link that can be broken from each to each. */
export class StrictCluster {
  readonly #options: ClusterOptions;
  readonly #edges: LatchkeyProcess[] = [];
  readonly #coordinators: LatchkeyProcess[] = [];
  /** By edge, then by coordinator. */
  readonly links: FaultyProxy[][] = [];
  readonly #killed = new Set<LatchkeyProcess>();
  #replicas: HttpReplica[] = [];

  private constructor(options: ClusterOptions) {
    this.#options = options;
  }

  /** Resolves when all of them serve. */
  static async start(options: ClusterOptions): Promise<StrictCluster> {
    const cluster = new StrictCluster(options);
    // The first makes the tables.
    cluster.#coordinators.push(await cluster.#startCoordinator(0));
    const others = Array.from({ length: options.coordinators - 1 }, (_, i) => cluster.#startCoordinator(i + 1));
    cluster.#coordinators.push(...(await Promise.all(others)));
    for (let edge = 0; edge < options.edges; edge++) {
      const ports = cluster.#coordinators.map((coordinator) => internalPortOf(coordinator));
      cluster.links.push(await Promise.all(ports.map((port) => FaultyProxy.start(port, options.atEnd))));
    }
    const starting = Array.from({ length: options.edges }, (_, edge) => cluster.#startEdge(edge));
    cluster.#edges.push(...(await Promise.all(starting)));
    return cluster;
  }

  /** Makes what the rules are for, and returns the replicas to ask for it. */
  async replicas(rules: readonly StrictRule[]): Promise<readonly StrictReplica[]> {
    this.#replicas = await httpReplicas(this.#edges, rules);
    return this.#edges.map((_, edge) => ({ ask: (key, cost) => this.#ask(edge, key, cost) }));
  }

  edge(index: number): LatchkeyProcess {
    return this.#edges[index] as LatchkeyProcess;
  }

  coordinator(index: number): LatchkeyProcess {
    return this.#coordinators[index] as LatchkeyProcess;
  }

  get size(): number {
    return this.#edges.length;
  }

  /** Whether that very process was killed: what it had under way is unknown. */
  isKilled(edge: LatchkeyProcess): boolean {
    return this.#killed.has(edge);
  }

  /** A call that every edge answers by itself. Its duration shows how much a busy machine adds to every call. */
  async probe(): Promise<void> {
    await Promise.all(this.#edges.map(({ baseUrl }) => fetch(`${baseUrl}/livez`)));
  }

  /** How often an edge has given up on a coordinator, as one may that stands still: what was under way is lost then. */
  get linksLost(): number {
    return this.#edges.reduce((sum, edge) => sum + edge.stderr().split("the coordinator is away").length - 1, 0);
  }

  /** Permits that an edge says it holds. */
  heldBy(edge: number): Promise<number> {
    return readMetric(internalPortOf(this.edge(edge)), "latchkey_permits_held");
  }

  /** Resolves when every edge can ask every coordinator. */
  async untilConnected(): Promise<void> {
    const isUp = (edge: number, { port }: FaultyProxy) =>
      readMetric(internalPortOf(this.edge(edge)), `latchkey_coordinator_ledger_up{address="127.0.0.1:${port}"}`);
    for (;;) {
      const up = await Promise.all(this.links.flatMap((links, edge) => links.map((link) => isUp(edge, link))));
      if (up.every((gauge) => gauge === 1)) return;
      await delay(20);
    }
  }

  async killEdge(index: number): Promise<void> {
    // Noted first, so that no call begins between the signal and the exit.
    this.#killed.add(this.edge(index));
    this.edge(index).kill("SIGKILL");
    await this.edge(index).exited;
  }

  /** Puts a new process in the place of a killed one. */
  async replaceEdge(index: number): Promise<void> {
    const edge = await this.#startEdge(index);
    this.#edges[index] = edge;
    const replica = this.#replicas[index];
    if (replica !== undefined) this.#replicas[index] = new HttpReplica(edge.baseUrl, replica.limited);
  }

  async replaceCoordinator(index: number): Promise<void> {
    const coordinator = await this.#startCoordinator(index);
    this.#coordinators[index] = coordinator;
    for (const links of this.links) (links[index] as FaultyProxy).targetPort = internalPortOf(coordinator);
  }

  async #ask(index: number, key: number, cost: number): Promise<StrictAnswer> {
    const edge = this.edge(index);
    const answer = await (this.#replicas[index] as HttpReplica).ask(key, cost);
    // A connection that is torn ends in many ways, all of which mean the same.
    return answer.outcome === "odd" && this.isKilled(edge) ? { outcome: "unanswered" } : answer;
  }

  #startCoordinator(index: number): Promise<LatchkeyProcess> {
    const { databaseUrl, ledgerUrl = databaseUrl, patient, programs, coordinatorEnvironment, atEnd } = this.#options;
    const environment = {
      LATCHKEY_ROLE: "coordinator",
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      DATABASE_URL: typeof ledgerUrl === "string" ? ledgerUrl : (ledgerUrl[index] as string),
      LATCHKEY_ROOT_KEY: testRootKey,
      ...(patient && { LATCHKEY_USAGE_TIMEOUT_MS: "20000" }),
      ...coordinatorEnvironment,
    };
    return startLatchkey(environment, programs?.coordinator, atEnd);
  }

  #startEdge(edge: number): Promise<LatchkeyProcess> {
    const { edgeEnvironment, programs, atEnd } = this.#options;
    const coordinators = (this.links[edge] as FaultyProxy[]).map(({ port }) => `127.0.0.1:${port}`).join(",");
    const environment = {
      LATCHKEY_ROLE: "edge",
      LATCHKEY_COORDINATORS: coordinators,
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      ...edgeEnvironment?.(edge),
    };
    return startLatchkey(environment, programs?.edge, atEnd);
  }
}

function internalPortOf({ internalUrl }: LatchkeyProcess): number {
  return Number(new URL(internalUrl).port);
}

/** Makes what each rule is for through the first server, and answers how to ask each server for it. */
export async function httpReplicas(
  servers: readonly { readonly baseUrl: string }[],
  rules: readonly StrictRule[],
): Promise<HttpReplica[]> {
  const client = latchkeyOf("sdk", servers[0]?.baseUrl as string, testRootKey);
  const limited = await Promise.all(
    rules.map((rule, i) => makeLimited(client, { of: "key", ...rule, isStrict: true }, `${i}`)),
  );
  return servers.map(({ baseUrl }) => new HttpReplica(baseUrl, limited));
}

/** A server that is asked with JSON and with gRPC in turns. */
export class HttpReplica implements StrictReplica {
  /** One for each rule. */
  readonly limited: readonly Limited[];
  readonly #clients: readonly LatchkeyClient[];
  #calls = 0;

  constructor(baseUrl: string, limited: readonly Limited[]) {
    this.limited = limited;
    this.#clients = kinds.map((kind) => latchkeyOf(kind, baseUrl, testRootKey));
  }

  async ask(index: number, cost = 1): Promise<StrictAnswer> {
    const client = this.#clients[this.#calls++ % this.#clients.length] as LatchkeyClient;
    const limited = this.limited[index] as Limited;
    try {
      const { code, placed } = limited.read(await call(client, limited, cost));
      if (placed === undefined) return { outcome: "odd", what: `key ${index}: ${code} without its rate limit` };
      if (code === "VALID") return { outcome: "admitted", ...placed };
      if (code === "RATE_LIMITED") return { outcome: "limited", ...placed };
      return { outcome: "odd", what: `key ${index}: ${code}` };
    } catch (error) {
      return failureOf(error);
    }
  }
}

async function call({ keys, ratelimits }: LatchkeyClient, limited: Limited, cost: number): Promise<LimitAnswer> {
  if (limited.method === "keys.verifyKey") return keys.verifyKey(limited.body(cost) as { key: string });
  return ratelimits.limit(limited.body(cost) as Parameters<typeof ratelimits.limit>[0]);
}

function failureOf(error: unknown): StrictAnswer {
  const { status, code, rawMessage } = error as { status?: number; code?: unknown; rawMessage?: string };
  if (status === 503) return { outcome: "unavailable" };
  if (code === "NETWORK_ERROR" || code === "TIMEOUT") return { outcome: "unanswered" };
  // The library says 14 for a connection that broke, too; the service's own answer has its own words.
  const isAnswer = rawMessage?.startsWith("the service");
  if (code === grpcUnavailable) return { outcome: isAnswer ? "unavailable" : "unanswered" };
  return { outcome: "odd", what: String(error) };
}
