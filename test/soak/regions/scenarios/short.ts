import { setTimeout as delay } from "node:timers/promises";
import { watchProcessors } from "../../../support/processors.ts";
import { watchStandstill } from "../../../support/standstill.ts";
import { countOf } from "../answers.ts";
import { monotonicMs } from "../clock.ts";
import { routesOf } from "../cut-edge.ts";
import { type Edge, edges, Lab, usual } from "../lab.ts";
import type { Report } from "../report.ts";
import { bodiesOf, type StrictKey, StrictLoad, sentWithin } from "../strict-load.ts";
import { isFull } from "../windows.ts";

const keys: readonly StrictKey[] = [
  { name: "60 per 2 s", limit: 60, durationMs: 2000, perSecondOnEachEdge: 15 },
  { name: "5 per 1 s", limit: 5, durationMs: 1000, perSecondOnEachEdge: 4 },
  { name: "1 per 1 s", limit: 1, durationMs: 1000, perSecondOnEachEdge: 3 },
];
const [near, , far] = edges;
/** Ends a test that waits in vain. */
const waitMaxMs = 60_000;
/** Of the time, and of the processor time that was wanted. */
const ranAtLeast = 0.95;
/** How often two windows are waited for in which the machine does not stand still. */
const attemptsMax = 4;

/** For the deep tests: a few windows of a healthy network, then one cut. */
export async function short(report: Report): Promise<void> {
  await using lab = await Lab.start({ distances: usual, login: "trust", keys: bodiesOf(keys) });
  const farMs = await lab.roundTripMs(far);
  report.none("delays that are not there", farMs < 80 ? [`${far} is ${farMs} ms from the ledger`] : []);
  const load = new StrictLoad(lab, keys);
  load.start();
  await until("every edge decides", () => edges.every((edge) => hasDecided(lab, edge, 0)));

  for (let attempt = 1, isJudged = false; attempt <= attemptsMax && !isJudged; attempt++) {
    const hasRun = watchMachine();
    const startMs = monotonicMs();
    const windows = () => load.windowsWithin(startMs, monotonicMs());
    await until("two windows of every key are over", () =>
      keys.every(({ name }) => windows().filter(({ key }) => key === name).length >= 2),
    );
    const over = windows();
    const full = over.filter(isFull).length;
    const late = countOf(sentWithin(lab.answers, startMs, monotonicMs()), "unavailable");
    // A window that was not filled, or a 503, says something about the service only if the machine has run all the time.
    isJudged = hasRun() || (full === over.length && late === 0);
    if (isJudged) {
      report.allOf("windows exactly full", full, over.length);
      report.atMost("503 on a healthy network", late, 0);
    } else report.note("not judged: the machine stood still", `${full} of ${over.length} windows full, ${late} × 503`);
  }

  const routes = routesOf(far, "both ways");
  const hasRun = watchMachine();
  const cutMs = monotonicMs();
  await lab.cut(routes);
  // Only an edge that is really cut off runs out of permits.
  await until(`${far} cannot decide`, () => {
    return sentWithin(lab.answers, cutMs, monotonicMs()).some(
      ({ edge, outcome }) => edge === far && outcome === "unavailable",
    );
  });
  await lab.heal(routes);
  const healedMs = monotonicMs();
  await until(`${far} decides again`, () => hasDecided(lab, far, healedMs));
  await load.stop();

  load.checkNeverOver(report);
  const beside = sentWithin(lab.answers, cutMs, monotonicMs()).filter(({ edge }) => edge === near);
  const late = countOf(beside, "unavailable");
  if (hasRun()) report.atMost("503 on an edge that was not cut", late, 0);
  else report.note("503 on an edge that was not cut, not judged: the machine stood still", String(late));
}

/**
 * Answers whether the machine has run all the time since. One that gets no processors from its host, or has no time for this
 * process, is late with everything: with answers, and with refusals that leave a window unused.
 */
function watchMachine(): () => boolean {
  const processors = watchProcessors();
  const stoodStillMs = watchStandstill();
  const fromMs = performance.now();
  return () => {
    const nowMs = performance.now();
    return processors.share() >= ranAtLeast && stoodStillMs(fromMs, nowMs) <= (1 - ranAtLeast) * (nowMs - fromMs);
  };
}

/** Whether the edge has given a verdict on a key, by permits that it got after a moment. */
function hasDecided(lab: Lab, edge: Edge, fromMs: number): boolean {
  const since = sentWithin(lab.answers, fromMs, monotonicMs()).filter((answer) => answer.edge === edge);
  return countOf(since, "admitted") > 0;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadlineMs = monotonicMs() + waitMaxMs;
  while (!holds()) {
    if (monotonicMs() > deadlineMs) throw new Error(`${waitMaxMs / 1000} s passed, and not yet: ${what}`);
    await delay(20);
  }
}
