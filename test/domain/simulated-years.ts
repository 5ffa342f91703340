import { SeededRandom } from "./seeded-random.ts";
import { type Rule, SlowCounter, type Subject } from "./slow-counter.ts";

export type SubjectFactory = (rule: Rule, remaining: number, createdAt: Date) => Subject;

/** A moment at which every key is asked for some uses, and how the clock got there. */
interface Event {
  readonly kind: EventKind;
  readonly now: Date;
}

const eventKinds = [
  "traffic",
  "midnight",
  "before midnight",
  "downtime",
  "clock set back",
  "clock set forward",
] as const;
type EventKind = (typeof eventKinds)[number];

const start = new Date("2023-11-20T12:00:00Z");
const end = new Date("2033-12-24T00:00:00Z");
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const keys: readonly { readonly rule: Rule; readonly remaining: number }[] = [
  { rule: { interval: "daily", amount: 20, carryOver: false }, remaining: 50 },
  { rule: { interval: "daily", amount: 7, carryOver: true }, remaining: 0 },
  { rule: { interval: "monthly", amount: 100, carryOver: false }, remaining: 250 },
  { rule: { interval: "monthly", amount: 90, carryOver: true }, remaining: 3 },
  { rule: { interval: "daily", amount: 1_000_000_000, carryOver: true }, remaining: 2_147_483_647 },
  { rule: { interval: "monthly", amount: 2_147_483_647, carryOver: false }, remaining: 1 },
];

/**
 * Ten years of events with that seed, every key's answer compared with the slow counter's after each. Answers the first
 * difference in words, undefined when there is none.
 */
export function firstDifference(seed: number, create: SubjectFactory): string | undefined {
  const random = new SeededRandom(seed);
  const pairs = keys.map(({ rule, remaining }) => ({
    rule,
    subject: create(rule, remaining, start),
    model: new SlowCounter(rule, remaining, start),
  }));
  for (const { kind, now } of eventsOf(seed)) {
    for (const { rule, subject, model } of pairs) {
      const wanted = wantedOf(rule, random);
      const expected = model.spend(wanted, now);
      const actual = subject.spend(wanted, now);
      if (actual.granted !== expected.granted || actual.remaining !== expected.remaining) {
        const what = `${JSON.stringify(rule)} at ${now.toISOString()} (${kind}), ${wanted} wanted`;
        return `seed ${seed}: ${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
      }
    }
  }
  return undefined;
}

/** How often each kind of event happens with that seed, and the days with one. */
export function describeYears(seed: number): { counts: Map<EventKind, number>; days: Set<string> } {
  const counts = new Map<EventKind, number>();
  const days = new Set<string>();
  for (const { kind, now } of eventsOf(seed)) {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    days.add(now.toISOString().slice(0, 10));
  }
  return { counts, days };
}

export function allEventKinds(): readonly EventKind[] {
  return eventKinds;
}

function* eventsOf(seed: number): Generator<Event> {
  const random = new SeededRandom(seed ^ 0x5eed);
  let nowMs = start.getTime();
  while (nowMs < end.getTime()) {
    const kind = pickKind(random);
    nowMs = nextMs(kind, nowMs, random);
    yield { kind, now: new Date(nowMs) };
  }
}

function pickKind(random: SeededRandom): EventKind {
  if (random.chance(0.3)) return random.pick(["midnight", "before midnight"]);
  if (random.chance(0.04)) return random.pick(["clock set back", "clock set forward"]);
  return random.chance(0.004) ? "downtime" : "traffic";
}

function nextMs(kind: EventKind, nowMs: number, random: SeededRandom): number {
  switch (kind) {
    case "traffic":
      return nowMs + random.integer(0, 20 * hourMs);
    case "midnight":
      return midnightAfter(nowMs);
    case "before midnight":
      return midnightAfter(nowMs) - 1;
    case "downtime":
      return nowMs + random.integer(2 * dayMs, 100 * dayMs);
    // By hours mostly; by weeks at times, so that the first of a month is passed both ways.
    case "clock set back":
      return nowMs - random.integer(1, random.chance(0.7) ? 30 * hourMs : 40 * dayMs);
    case "clock set forward":
      return nowMs + random.integer(1, random.chance(0.7) ? 30 * hourMs : 40 * dayMs);
  }
}

function midnightAfter(nowMs: number): number {
  const midnight = new Date(nowMs);
  midnight.setUTCHours(24, 0, 0, 0);
  return midnight.getTime();
}

/** Sometimes nothing, mostly a part of a refill's amount, sometimes far more than is left. */
function wantedOf({ amount }: Rule, random: SeededRandom): number {
  if (random.chance(0.1)) return 0;
  return random.integer(1, Math.min(amount, 1000) * (random.chance(0.1) ? 5 : 1));
}
