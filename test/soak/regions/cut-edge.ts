import { coordinators, type Edge, ledger } from "./lab.ts";
import type { Route } from "./network.ts";

export const cutDirections = ["both ways", "from the edge", "to the edge"] as const;
export type CutDirection = (typeof cutDirections)[number];

/** The routes between an edge and everything beside the ledger. */
export function routesOf(edge: Edge, direction: CutDirection): Route[] {
  const core = [ledger, ...coordinators];
  const from = core.map((peer) => ({ from: edge, to: peer }));
  const to = core.map((peer) => ({ from: peer, to: edge }));
  if (direction === "both ways") return [...from, ...to];
  return direction === "from the edge" ? from : to;
}
