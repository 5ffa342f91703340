import { setTimeout as delay } from "node:timers/promises";
import { countOf, slowest503Ms } from "../answers.ts";
import { monotonicMs } from "../clock.ts";
import { edges, farthest, Lab } from "../lab.ts";
import type { KeyBody } from "../make-keys.ts";
import type { Report } from "../report.ts";
import { bodiesOf, type StrictKey, StrictLoad } from "../strict-load.ts";
import { isFull } from "../windows.ts";

const strict: readonly StrictKey[] = [
  { name: "100 per 5 s", limit: 100, durationMs: 5000, perSecondOnEachEdge: 10 },
  { name: "5 per 2 s", limit: 5, durationMs: 2000, perSecondOnEachEdge: 2 },
];
const coldKeys = Array.from({ length: 600 }, (_, i) => `cold ${i + 1}`);
const countedKeys = ["counted 1", "counted 2"];
const loadMs = 25_000;

/** The largest distance that is supported: 250 ms from edge to coordinator, 160 ms from there to the ledger. */
export async function far(report: Report): Promise<void> {
  const keys = new Map<string, KeyBody>([
    ...bodiesOf(strict),
    ...coldKeys.map((name) => [name, {}] as const),
    ...countedKeys.map((name) => [name, { remaining: 1_000_000 }] as const),
  ]);
  await using lab = await Lab.start({ distances: farthest, login: "trust", keys });
  const load = new StrictLoad(lab, strict);
  const startMs = monotonicMs();
  const others = edges.flatMap((edge, i) => [
    // Each edge verifies each cold key once, in an order of its own.
    lab.load(edge, [...coldKeys.slice(i * 200), ...coldKeys.slice(0, i * 200)], 30, 1),
    lab.load(edge, countedKeys, 10),
  ]);
  load.start();
  await delay(loadMs);
  await Promise.all([load.stop(), ...others.map((other) => other.stop())]);
  const endMs = monotonicMs();

  load.checkNeverOver(report);
  const windows = load.windowsWithin(startMs, endMs);
  report.allOf("windows exactly full", windows.filter(isFull).length, windows.length);
  for (const kind of ["cold", "counted", "per"]) {
    const own = lab.answers.filter(({ key }) => key.includes(kind));
    const name = kind === "per" ? "strict" : kind;
    report.atMost(`503 for ${name} keys, of ${own.length} calls`, countOf(own, "unavailable"), 0);
  }
  report.note("slowest 503", `${Math.round(slowest503Ms(lab.answers))} ms`);
}
