import { setTimeout as delay } from "node:timers/promises";
import { countOf, slowest503Ms } from "../answers.ts";
import { monotonicMs } from "../clock.ts";
import { edges, Lab, usual } from "../lab.ts";
import type { Login } from "../postgres.ts";
import type { Report } from "../report.ts";
import { bodiesOf, type StrictKey, StrictLoad, sentWithin, threeLimits } from "../strict-load.ts";
import { isFull } from "../windows.ts";

export interface HealthyTimes {
  /** The load's first part. Above 60 s it covers the moment at which remembered keys are looked up again. */
  readonly firstMs: number;
  /** Without any call: above 10 s, connections that nobody uses are dropped. */
  readonly idleMs: number;
  readonly secondMs: number;
}

export const healthyTimes: HealthyTimes = { firstMs: 65_000, idleMs: 12_000, secondMs: 13_000 };

/** Nothing is broken: every window must be exactly full, and nobody may get a 503. */
export async function healthy(
  report: Report,
  login: Login,
  times: HealthyTimes = healthyTimes,
  keys: readonly StrictKey[] = threeLimits,
): Promise<void> {
  await using lab = await Lab.start({ distances: usual, login, keys: bodiesOf(keys) });
  const roundTrips = await Promise.all(edges.map((edge) => lab.roundTripMs(edge)));
  report.note("round trips to the ledger", roundTrips.map((ms) => `${ms} ms`).join(", "));
  const load = new StrictLoad(lab, keys);
  const startMs = monotonicMs();
  await during(load, times.firstMs);
  const pausedMs = monotonicMs();
  await delay(times.idleMs);
  const resumedMs = monotonicMs();
  await during(load, times.secondMs);
  const endMs = monotonicMs();

  load.checkNeverOver(report);
  const windows = [...load.windowsWithin(startMs, pausedMs), ...load.windowsWithin(resumedMs, endMs)];
  for (const { name } of keys) {
    const own = windows.filter(({ key }) => key === name);
    report.allOf(`windows of ${name} exactly full`, own.filter(isFull).length, own.length);
  }
  const { answers } = lab;
  report.atMost("503 in the first 10 s", countOf(sentWithin(answers, startMs, startMs + 10_000), "unavailable"), 0);
  report.atMost("503 from then on", countOf(sentWithin(answers, startMs + 10_000, pausedMs), "unavailable"), 0);
  report.atMost(
    `503 after ${times.idleMs / 1000} s idle`,
    countOf(sentWithin(answers, resumedMs, endMs), "unavailable"),
    0,
  );
  report.note("calls, and the slowest 503", `${answers.length}, ${Math.round(slowest503Ms(answers))} ms`);
}

async function during(load: StrictLoad, ms: number): Promise<void> {
  load.start();
  await delay(ms);
  await load.stop();
}
