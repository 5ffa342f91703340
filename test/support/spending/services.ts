import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import type { SeededRandom } from "../../domain/seeded-random.ts";
import { FaultyProxy } from "../faulty-proxy.ts";
import { Fleet, type LoadedFleet } from "../fleet.ts";
import type { LatchkeyProcess } from "../latchkey-process.ts";
import { query } from "../run-statement.ts";
import { StrictCluster } from "../strict/index.ts";
import { tempFolder } from "../temp-folder.ts";
import { createTestDatabase } from "../test-database.ts";
import type { TablesBeside } from "./book.ts";

export interface Fault {
  readonly name: string;
  /** While callers use the service. */
  hit(): Promise<void>;
  /** When they have ended. */
  mend?(): Promise<void>;
}

/** A service that breaks in some ways. */
export interface BreakableService {
  readonly fleet: LoadedFleet;
  readonly tables: TablesBeside;
  readonly faults: readonly Fault[];
  /** Whether a process is left when one has ended. */
  readonly hasOthers: boolean;
  /** Answers that were cut off. */
  cuts(): number;
}

export type StartBreakable = (random: SeededRandom) => Promise<BreakableService>;

const cutsOfOneFault = 3;

/** One process on the embedded store; with several workers these are edges of it. */
export function startEmbedded(workers: number): StartBreakable {
  return async (random) => {
    const folder = tempFolder();
    const fleet = await Fleet.startEmbedded(folder, { LATCHKEY_WORKERS: String(workers) });
    const linked = await LinkedCallers.start(fleet);
    return {
      fleet: linked,
      tables: sqliteTables(join(folder, "latchkey.db")),
      faults: [
        killing("the service is killed", fleet, () => 0),
        cutting("answers to callers are cut", linked.links, random),
        stopping("the service is restarted in order", fleet, () => 0),
      ],
      hasOthers: false,
      cuts: () => cutsOf(linked.links),
    };
  };
}

/** Three replicas, and an edge with its coordinator, on one database. */
export async function startReplicasAndEdge(random: SeededRandom): Promise<BreakableService> {
  const databaseUrl = await createTestDatabase();
  const ledger = await FaultyProxy.start(Number(new URL(databaseUrl).port));
  const ledgerUrl = Object.assign(new URL(databaseUrl), { port: ledger.port }).href;
  const [fleet, cluster] = await Promise.all([
    Fleet.start(ledgerUrl, 3),
    StrictCluster.start({ edges: 1, coordinators: 1, databaseUrl, ledgerUrl }),
  ]);
  const edgeIndex = fleet.size;
  const all: LoadedFleet = {
    size: edgeIndex + 1,
    replica: (index) => (index === edgeIndex ? cluster.edge(0) : fleet.replica(index)),
    isKilled: (replica) => fleet.isKilled(replica) || cluster.isKilled(replica),
  };
  const linked = await LinkedCallers.start(all);
  const edgeLinks = cluster.links.flat();
  const replaceCoordinator = () => cluster.replaceCoordinator(0);
  const endCoordinator = (signal: "SIGKILL" | "SIGTERM", end: string | number) => async () => {
    cluster.coordinator(0).kill(signal);
    await expectEnd(cluster.coordinator(0), end);
  };
  const victim = () => random.integer(0, fleet.size - 1);
  return {
    fleet: linked,
    tables: postgresTables(databaseUrl),
    faults: [
      killing("a replica is killed", fleet, victim),
      cutting("answers of the ledger are cut", [ledger], random),
      { name: "the edge is killed", hit: () => cluster.killEdge(0), mend: () => cluster.replaceEdge(0) },
      stopping("a replica is restarted in order", fleet, victim),
      cutting("answers to callers are cut", linked.links, random),
      { name: "the coordinator is killed", hit: endCoordinator("SIGKILL", "SIGKILL"), mend: replaceCoordinator },
      cutting("answers of the coordinator are cut", edgeLinks, random),
      { name: "the coordinator is restarted in order", hit: endCoordinator("SIGTERM", 0), mend: replaceCoordinator },
    ],
    hasOthers: true,
    cuts: () => cutsOf([ledger, ...linked.links, ...edgeLinks]),
  };
}

function killing(name: string, fleet: Fleet, victim: () => number): Fault {
  return ending(name, fleet, victim, "SIGKILL", "SIGKILL");
}

function stopping(name: string, fleet: Fleet, victim: () => number): Fault {
  return ending(name, fleet, victim, "SIGTERM", 0);
}

function ending(
  name: string,
  fleet: Fleet,
  victim: () => number,
  signal: "SIGKILL" | "SIGTERM",
  end: string | number,
): Fault {
  let index = 0;
  return {
    name,
    async hit() {
      index = victim();
      const process = fleet.replica(index);
      await fleet.kill(index, signal);
      await expectEnd(process, end);
    },
    mend: () => fleet.replace(index),
  };
}

async function expectEnd(process: LatchkeyProcess, wanted: string | number): Promise<void> {
  const end = await process.exited;
  if (end !== wanted) throw new Error(`a process ended with ${end}: ${process.stderr()}`);
}

/** Cuts connections in the place of some answers, when they have begun. */
function cutting(name: string, links: readonly FaultyProxy[], random: SeededRandom): Fault {
  const setReply = (reply: FaultyProxy["onReply"]) => {
    for (const link of links) link.onReply = reply;
  };
  return {
    name,
    async hit() {
      const enough = cutsOf(links) + cutsOfOneFault;
      setReply(({ bytesFromServer }) => (bytesFromServer > 1500 && random.chance(0.1) ? "cut" : "pass"));
      while (cutsOf(links) < enough) await delay(5);
      setReply(() => "pass");
    },
  };
}

function cutsOf(links: readonly FaultyProxy[]): number {
  return links.reduce((sum, { cuts }) => sum + cuts, 0);
}

/** A fleet whose callers reach each process over a link. */
class LinkedCallers implements LoadedFleet {
  readonly links: readonly FaultyProxy[];
  readonly #fleet: LoadedFleet;
  /** By link: the process, and as its callers see it. */
  readonly #seen: { readonly process: LatchkeyProcess; readonly linked: LatchkeyProcess }[] = [];

  private constructor(fleet: LoadedFleet, links: readonly FaultyProxy[]) {
    this.#fleet = fleet;
    this.links = links;
  }

  static async start(fleet: LoadedFleet): Promise<LinkedCallers> {
    const links = Array.from({ length: fleet.size }, () => FaultyProxy.start(0));
    return new LinkedCallers(fleet, await Promise.all(links));
  }

  get size(): number {
    return this.#fleet.size;
  }

  replica(index: number): LatchkeyProcess {
    const process = this.#fleet.replica(index);
    const seen = this.#seen[index];
    if (seen?.process === process) return seen.linked;
    const link = this.links[index] as FaultyProxy;
    link.targetPort = Number(new URL(process.baseUrl).port);
    const linked = { ...process, baseUrl: `http://127.0.0.1:${link.port}` };
    this.#seen[index] = { process, linked };
    return linked;
  }

  isKilled(replica: LatchkeyProcess): boolean {
    const { process } = this.#seen.find(({ linked }) => linked === replica) ?? {};
    // Another process may be in its place by now.
    return process === undefined || this.#fleet.isKilled(process);
  }
}

function sqliteTables(file: string): TablesBeside {
  return {
    forUpdate: "",
    async run(first, ...others) {
      const db = new DatabaseSync(file, { timeout: 60_000 });
      try {
        db.exec("BEGIN IMMEDIATE");
        const rows = db.prepare(first as string).all();
        for (const statement of others) db.exec(statement);
        db.exec("COMMIT");
        return rows;
      } finally {
        db.close();
      }
    },
  };
}

function postgresTables(url: string): TablesBeside {
  return {
    forUpdate: "FOR UPDATE",
    async run(...statements) {
      // The results of several statements are a list.
      const results: unknown = await query(url, ["BEGIN", ...statements, "COMMIT"].join("; "));
      return (results as readonly pg.QueryResult[])[1]?.rows ?? [];
    },
  };
}
