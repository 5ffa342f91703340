import { setTimeout as delay } from "node:timers/promises";
import { countOf, longestOutageMs } from "../answers.ts";
import { monotonicMs } from "../clock.ts";
import { coordinators, edges, Lab, ledger, usual } from "../lab.ts";
import type { KeyBody } from "../make-keys.ts";
import type { Report } from "../report.ts";
import { bodiesOf, manyKeys, type StrictKey, StrictLoad, sentWithin, threeLimits } from "../strict-load.ts";
import { isFull } from "../windows.ts";

const [first, second] = coordinators;
const rememberedKeys = Array.from({ length: 2000 }, (_, i) => `remembered ${i + 1}`);
const rememberPerSecond = 250;
/** Until first look-ups and the opening of connections are over. */
const warmUpMs = 6000;

/** Coordinators are stopped in order and started again, in turns: nothing may be noticed of it. */
export async function restarts(report: Report, times = 20): Promise<void> {
  const bodies = new Map<string, KeyBody>([
    ...bodiesOf(threeLimits),
    ...rememberedKeys.map((name) => [name, {}] as const),
  ]);
  await using lab = await Lab.start({ distances: usual, login: "trust", keys: bodies });
  const remembering = edges.map((edge) => lab.load(edge, rememberedKeys, rememberPerSecond, 1));
  await Promise.all(remembering.map(({ done }) => done));
  const load = new StrictLoad(lab, threeLimits);
  load.start();
  await delay(warmUpMs);

  const lookUpsBefore = await lookUps(lab);
  const again = edges.map((edge) => lab.load(edge, rememberedKeys, 100));
  const startMs = monotonicMs();
  for (let i = 0; i < times; i++) {
    const coordinator = i % 2 === 0 ? first : second;
    await lab.stop(coordinator);
    await lab.startCoordinator(coordinator);
    // Edges must have found it again before the other one goes.
    await delay(1500);
  }
  const endMs = monotonicMs();
  await Promise.all([load.stop(), ...again.map((other) => other.stop())]);

  load.checkNeverOver(report);
  report.atMost("503", countOf(sentWithin(lab.answers, startMs, endMs), "unavailable"), 0);
  const windows = load.windowsWithin(startMs, endMs);
  report.allOf("windows exactly full", windows.filter(isFull).length, windows.length);
  const remembered = rememberedKeys.length * edges.length;
  const share = (100 * ((await lookUps(lab)) - lookUpsBefore)) / remembered;
  report.atMost(
    `look-ups, of ${remembered} remembered keys, in ${Math.round((endMs - startMs) / 1000)} s`,
    share,
    1,
    " %",
  );
}

export async function killed(report: Report): Promise<void> {
  await disturbed(report, "longest time of 503", 0.8, async (lab) => {
    await lab.kill(first);
    await delay(5000);
    await lab.startCoordinator(first);
  });
}

export async function hung(report: Report): Promise<void> {
  await disturbed(report, "longest time of 503", 0.8, async (lab) => {
    lab.processOf(first).kill("SIGSTOP");
    await delay(5000);
    lab.processOf(first).kill("SIGCONT");
  });
}

/** It runs and its edges reach it, but it does not reach Postgres. */
export async function cutFromLedger(report: Report): Promise<void> {
  const routes = [
    { from: first, to: ledger },
    { from: ledger, to: first },
  ];
  await disturbed(report, "longest time of 503", 1, async (lab) => {
    await lab.cut(routes);
    await delay(8000);
    await lab.heal(routes);
  });
}

/** It is started again with an address at which there is no Postgres. */
export async function withWrongLedger(report: Report): Promise<void> {
  await disturbed(report, "longest time of 503", 1, async (lab) => {
    await lab.stop(first);
    const { kill } = lab.launchCoordinatorWithoutLedger(first);
    await delay(8000);
    kill();
    await delay(200);
    await lab.startCoordinator(first);
  });
}

/** Something happens to one of two coordinators, under load on keys of both. */
async function disturbed(
  report: Report,
  figure: string,
  outageMaxS: number,
  happen: (lab: Lab) => Promise<void>,
  keys: readonly StrictKey[] = manyKeys,
): Promise<void> {
  await using lab = await Lab.start({ distances: usual, login: "trust", keys: bodiesOf(keys) });
  const load = new StrictLoad(lab, keys);
  load.start();
  await delay(warmUpMs);
  const startMs = monotonicMs();
  await happen(lab);
  await delay(4000);
  const seen = sentWithin(lab.answers, startMs, monotonicMs());
  await load.stop();

  load.checkNeverOver(report);
  report.atMost(figure, longestOutageMs(seen) / 1000, outageMaxS, " s");
  const failed = seen.filter(({ outcome }) => outcome === "unavailable");
  const failedKeys = new Set(failed.map(({ key }) => key)).size;
  report.note("503", `${failed.length} of ${seen.length} calls, of ${failedKeys} of ${keys.length} keys`);
}

/** Keys looked up in Postgres since its start: rows that were found by their digests. */
async function lookUps(lab: Lab): Promise<number> {
  // Postgres' processes tell their counts once a second at most.
  await delay(1500);
  const { rows } = await lab.postgres.query(
    "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'keys_pkey'",
  );
  return Number(rows[0]?.idx_tup_read);
}
