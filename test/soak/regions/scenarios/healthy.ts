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

/** Keys without a limit: each is one look-up at first, and many are under way at once. */
const plainKeys = Array.from({ length: 100 }, (_, i) => `plain ${i + 1}`);
/** First verified after the idle time, when connections have been dropped. */
const lateKeys = Array.from({ length: 100 }, (_, i) => `late ${i + 1}`);
const plainPerSecond = 50;

export const healthyTimes: HealthyTimes = { firstMs: 65_000, idleMs: 12_000, secondMs: 13_000 };

/** Nothing is broken: every window must be exactly full, and nobody may get a 503. */
export async function healthy(
  report: Report,
  login: Login,
  times: HealthyTimes = healthyTimes,
  keys: readonly StrictKey[] = threeLimits,
): Promise<void> {
  const plain = [...plainKeys, ...lateKeys].map((name) => [name, {}] as const);
  await using lab = await Lab.start({ distances: usual, login, keys: new Map([...bodiesOf(keys), ...plain]) });
  const roundTrips = await Promise.all(edges.map((edge) => lab.roundTripMs(edge)));
  report.note("round trips to the ledger", roundTrips.map((ms) => `${ms} ms`).join(", "));
  const load = new StrictLoad(lab, keys);
  const startMs = monotonicMs();
  await during(lab, load, plainKeys, times.firstMs);
  const pausedMs = monotonicMs();
  await delay(times.idleMs);
  const resumedMs = monotonicMs();
  await during(lab, load, lateKeys, times.secondMs);
  const endMs = monotonicMs();

  load.checkNeverOver(report);
  const windows = [...load.windowsWithin(startMs, pausedMs), ...load.windowsWithin(resumedMs, endMs)];
  for (const { name } of keys) {
    const own = windows.filter(({ key }) => key === name);
    report.allOf(`windows of ${name} exactly full`, own.filter(isFull).length, own.length);
  }
  const { answers } = lab;
  report.atMost("503 in the first 50 s", countOf(sentWithin(answers, startMs, startMs + 50_000), "unavailable"), 0);
  report.atMost("503 at the cache's 60 s", countOf(sentWithin(answers, startMs + 50_000, pausedMs), "unavailable"), 0);
  report.atMost(
    `503 after ${times.idleMs / 1000} s idle`,
    countOf(sentWithin(answers, resumedMs, endMs), "unavailable"),
    0,
  );
  report.note("calls, and the slowest 503", `${answers.length}, ${Math.round(slowest503Ms(answers))} ms`);
}

async function during(lab: Lab, load: StrictLoad, plain: readonly string[], ms: number): Promise<void> {
  const plainLoads = edges.map((edge) => lab.load(edge, plain, plainPerSecond));
  load.start();
  await delay(ms);
  await Promise.all([load.stop(), ...plainLoads.map((running) => running.stop())]);
}
