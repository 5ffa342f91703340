import { createMetrics } from "../../../src/ambient/metrics.ts";
import { Coordinator } from "../../../src/ratelimit/coordinator/coordinator.ts";
import type { PermitResult, SubjectAsk } from "../../../src/store/permit-ledger.ts";
import { HeldCommits } from "../../batching/held-commits.ts";
import { TestClock } from "../../support/test-clock.ts";
import { grantAll } from "./asks.ts";

export type HeldEngine = HeldCommits<SubjectAsk, PermitResult>;

/** A coordinator on lanes that answer when told to, and replicas that remember what they were recalled. */
export function setUpCoordinator({
  lanes = 1,
  replicas = 3,
  answer = grantAll as (ask: SubjectAsk) => PermitResult,
} = {}) {
  const engines = Array.from({ length: lanes }, (): HeldEngine => new HeldCommits(answer));
  const clock = new TestClock();
  const coordinator = new Coordinator(
    engines.map(({ commit }) => ({ exchange: commit })),
    { clock, metrics: createMetrics() },
  );
  const members = Array.from({ length: replicas }, () => {
    const recalls: string[] = [];
    return { ...coordinator.join((subject) => recalls.push(subject)), recalls };
  });
  return {
    coordinator,
    clock,
    engines,
    engine: engines[0] as HeldEngine,
    members: members as [Member, Member, Member],
  };
}
type Member = ReturnType<Coordinator["join"]> & { recalls: string[] };
