import type { SeededRandom } from "../domain/seeded-random.ts";
import type { FaultyProxy } from "./faulty-proxy.ts";
import type { PostgresServer } from "./postgres-server.ts";
import type { StrictBook } from "./strict-book.ts";
import type { StrictCluster } from "./strict-cluster.ts";
import type { Fault } from "./strict-trial.ts";

/** An edge killed, and another process put in its place. */
export function killEdge(cluster: StrictCluster, edge: number, book: StrictBook): Fault {
  return {
    name: `edge ${edge} is killed`,
    ms: 1200,
    async begin() {
      await cluster.killEdge(edge);
      book.killed(edge);
    },
    end: () => cluster.replaceEdge(edge),
  };
}

/** Processes killed, or standing still. */
export function processFaults(cluster: StrictCluster, postgres: PostgresServer): Fault[] {
  return [
    {
      name: "an edge stands still",
      ms: 1500,
      begin: () => cluster.edge(1).kill("SIGSTOP"),
      end: () => cluster.edge(1).kill("SIGCONT"),
    },
    {
      name: "a coordinator is killed",
      ms: 500,
      begin: () => cluster.coordinator(0).kill("SIGKILL"),
      end: () => cluster.replaceCoordinator(0),
    },
    {
      name: "a coordinator stands still",
      ms: 2500,
      begin: () => cluster.coordinator(1).kill("SIGSTOP"),
      end: () => cluster.coordinator(1).kill("SIGCONT"),
    },
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
export function linkFaults(cluster: StrictCluster, ledgerLink: FaultyProxy, random: SeededRandom): Fault[] {
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
