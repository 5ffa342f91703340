import { setTimeout as delay } from "node:timers/promises";
import { type Answer, countOf } from "../answers.ts";
import { monotonicMs } from "../clock.ts";
import { type CutDirection, routesOf } from "../cut-edge.ts";
import { type Edge, Lab, usual } from "../lab.ts";
import type { Report } from "../report.ts";
import { bodiesOf, type StrictKey, StrictLoad, sentWithin, threeLimits } from "../strict-load.ts";
import { unusedPermits } from "../windows.ts";

/** An edge is back when it has had no 503 for so long. */
const calmMs = 6000;
const calmWaitMs = 70_000;
const awayMaxMs = 3000;
const cutEdge: Edge = "edge3";

/** The farthest edge is cut from everything beside the ledger, then the cut heals. One cut after the other. */
export async function cuts(
  report: Report,
  lengthsMs: readonly number[],
  direction: CutDirection,
  keys: readonly StrictKey[] = threeLimits,
): Promise<void> {
  await using lab = await Lab.start({ distances: usual, login: "trust", keys: bodiesOf(keys) });
  const load = new StrictLoad(lab, keys);
  load.start();
  await calm(lab, monotonicMs());
  for (const lengthMs of lengthsMs) {
    const routes = routesOf(cutEdge, direction);
    const cutMs = monotonicMs();
    await lab.cut(routes);
    await delay(lengthMs);
    await lab.heal(routes);
    const healedMs = monotonicMs();
    await calm(lab, healedMs);
    // The longest window that opened after the heal must be over before it can be counted.
    await delay(Math.max(0, healedMs + 2.2 * longestMs(keys) - monotonicMs()));
    tell(report, `${lengthMs / 1000} s`, lab, load, cutMs, healedMs);
  }
  await load.stop();
  load.checkNeverOver(report);
}

function tell(report: Report, what: string, lab: Lab, load: StrictLoad, cutMs: number, healedMs: number): void {
  const after = sentWithin(lab.answers, healedMs, Number.POSITIVE_INFINITY);
  const awayMs = Math.max(0, last503Ms(after) - healedMs);
  report.atMost(`${what}: away after the heal`, awayMs / 1000, awayMaxMs / 1000, " s");
  const opened = load.windowsWithin(healedMs, monotonicMs());
  report.atMost(`${what}: permits granted to nobody after it`, unusedPermits(opened), 0);
  const others = sentWithin(lab.answers, cutMs, Number.POSITIVE_INFINITY).filter(({ edge }) => edge !== cutEdge);
  report.atMost(`${what}: 503 on the other edges`, countOf(others, "unavailable"), 0);
}

/** Resolves when no edge has had a 503 for a while; gives up after a longer one. */
async function calm(lab: Lab, sinceMs: number): Promise<void> {
  while (monotonicMs() - sinceMs < calmWaitMs) {
    await delay(200);
    if (monotonicMs() - Math.max(sinceMs, last503Ms(lab.answers)) > calmMs) return;
  }
}

/** When the last call was sent that got a 503. */
function last503Ms(answers: readonly Answer[]): number {
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const { outcome, sentMs } of answers) if (outcome === "unavailable") lastMs = Math.max(lastMs, sentMs);
  return lastMs;
}

function longestMs(keys: readonly StrictKey[]): number {
  return Math.max(...keys.map(({ durationMs }) => durationMs));
}
