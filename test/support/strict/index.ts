/*
 * Strict limits under load, for tests. Each has the same three steps:
 *
 * 1. Replicas to ask. `httpReplicas`: servers that run. `StrictCluster`: edges and coordinators, each a process.
 *    `StrictHarness`: limiters and coordinators in this process, without sockets.
 * 2. A load on them: `new StrictLoad(demandOf(…), replicas, underWayMax)`, then `run(ms)`.
 * 3. The load's book, which has every answer: `load.book.problems()` says what is wrong with them.
 *
 * To break things meanwhile: `startTrial` does 1 and 2 with a cluster, and `trial.run(fault)` breaks and mends one thing.
 */
export { type StrictAnswer, StrictBook } from "./book.ts";
export { type ClusterOptions, type HttpReplica, httpReplicas, StrictCluster } from "./cluster.ts";
export { type HarnessOptions, type HarnessReplica, StrictHarness } from "./harness.ts";
export { demandOf, type KeyDemand, StrictLoad, varied } from "./load.ts";
export {
  type Fault,
  killEdge,
  linkFaults,
  processFaults,
  type StartedTrial,
  StrictTrial,
  startTrial,
} from "./trial.ts";
