import { deadlineOf, versionsInForce } from "./check-fields.ts";
import type { KeyRecord, Problem } from "./key-record.ts";
import { bodyOf, type Call, type History, type Ratelimit, type Verification } from "./operations.ts";

/** Ends of windows are shown in whole milliseconds. */
const roundingMs = 2;

interface Admission {
  readonly call: Call;
  readonly seen: Verification;
  readonly reset: number;
  readonly rule: Ratelimit;
}

/**
 * No window lets more pass than its limit, and no window begins before the one before has ended. Where all windows are
 * one location's, none refuses before it is full; elsewhere what others hold or have reported may stand in the way.
 */
export function checkWindows(record: KeyRecord, history: History): Problem[] {
  const admissions = answersOf(record, "VALID");
  const strict = admissions.filter(({ rule }) => !rule.async);
  const problems = [...checkStrict(record, strict, history), ...checkApart(record, strict, "strict")];
  const local = Map.groupBy(
    admissions.filter(({ rule }) => rule.async),
    ({ call }) => call.replica,
  );
  for (const [replica, own] of local) {
    problems.push(...checkLocal(record, own, `local, replica ${replica}`));
    if (!history.localWindowsAreShared) problems.push(...checkApart(record, own, `local, replica ${replica}`));
  }
  if (!history.localWindowsAreShared) problems.push(...checkRefusals(record, admissions, history));
  return problems;
}

function answersOf({ calls, versions }: KeyRecord, code: string): Admission[] {
  return calls.flatMap((call) => {
    const seen = bodyOf(call, "verifyKey");
    if (seen?.code !== code || seen.ratelimit === undefined) return [];
    const rule = versions.find(({ fields }) => fields.meta.change === seen.meta.change)?.fields.ratelimit;
    return rule === undefined ? [] : [{ call, seen, reset: seen.ratelimit.reset, rule }];
  });
}

/**
 * There is an order of the admissions of a window, in line with their times, in which the one in place k had a limit of k
 * or more. Each has a last place that its limit allows, and one before those that certainly came after it; in the order of
 * these last places all of them have room, or they have it in no order.
 */
function checkStrict(record: KeyRecord, admissions: readonly Admission[], history: History): Problem[] {
  const deadline = deadlineOf(history);
  const limitOf = (call: Call) => {
    // Also of a key that is local by now: a replica that has not heard of it is granted permits by the new limit.
    return Math.max(0, ...versionsInForce(record, call, deadline).map(({ fields }) => fields.ratelimit?.limit ?? 0));
  };
  return [...Map.groupBy(admissions, ({ reset }) => reset)].flatMap(([reset, own]) => {
    const latestStartFirst = own.map(({ call }) => ({ call, last: limitOf(call) }));
    latestStartFirst.sort((a, b) => b.call.startMs - a.call.startMs);
    for (const [at, each] of latestStartFirst.entries()) {
      for (const after of latestStartFirst.slice(0, at)) {
        if (after.call.startMs > each.call.endMs) each.last = Math.min(each.last, after.last - 1);
      }
    }
    const places = [...latestStartFirst].sort((a, b) => a.last - b.last);
    const over = places.findIndex(({ last }, at) => at + 1 > last);
    if (over === -1) return [];
    const text = `the strict window until ${reset} let ${over + 1} pass where its limit allows ${places[over]?.last}`;
    return [{ rule: "windows", keyId: record.keyId, text, calls: places.slice(0, over + 1).map(({ call }) => call) }];
  });
}

/**
 * A replica lets at most the limit pass in a window, and windows of at least this duration follow each other: twice the
 * limit in any such stretch of time. Limits may change: the largest that was gone by counts.
 */
function checkLocal({ keyId }: KeyRecord, admissions: readonly Admission[], name: string): Problem[] {
  const problems: Problem[] = [];
  const limitOf = (some: readonly Admission[]) => Math.max(...some.map(({ rule }) => rule.limit));
  const callsOf = (some: readonly Admission[]) => some.map(({ call }) => call);
  for (const [reset, own] of Map.groupBy(admissions, ({ reset }) => reset)) {
    const limit = limitOf(own);
    if (own.length <= limit) continue;
    const text = `the window until ${reset} (${name}) let ${own.length} pass, its limit is ${limit}`;
    problems.push({ rule: "windows", keyId, text, calls: callsOf(own) });
  }
  const durationMs = Math.min(...admissions.map(({ rule }) => rule.duration));
  for (const [at, first] of admissions.entries()) {
    const untilMs = first.call.startMs + durationMs - roundingMs;
    const within = admissions.slice(at).filter(({ call }) => call.endMs < untilMs);
    if (within.length === 0 || within.length <= 2 * limitOf(within)) continue;
    const text = `${within.length} passed within ${durationMs} ms (${name}), its limit is ${limitOf(within)}`;
    problems.push({ rule: "windows", keyId, text, calls: callsOf(within) });
    break;
  }
  return problems;
}

/** A window opens after the one before it has ended, so its own end is at least its duration later. */
function checkApart({ keyId, versions }: KeyRecord, admissions: readonly Admission[], name: string): Problem[] {
  const durationMs = Math.min(...versions.map(({ fields }) => fields.ratelimit?.duration ?? Infinity));
  const windows = [...Map.groupBy(admissions, ({ reset }) => reset)].sort(([a], [b]) => a - b);
  for (const [at, [reset, own]] of windows.entries()) {
    const [before, others] = windows[at - 1] ?? [-Infinity, []];
    if (reset - before >= durationMs - roundingMs) continue;
    const text = `a window until ${reset} (${name}) began before the one until ${before} had ended`;
    return [{ rule: "windows", keyId, text, calls: [...others, ...own].map(({ call }) => call) }];
  }
  return [];
}

/**
 * When a verification was refused, its window was full: by those that it had let pass, and by those under way that may have
 * held a place for a moment. Permits that were at hand when a strict limit was removed are lost until the window ends.
 */
function checkRefusals(record: KeyRecord, admissions: readonly Admission[], history: History): Problem[] {
  const deadline = deadlineOf(history);
  const problems: Problem[] = [];
  for (const { call, reset, rule } of answersOf(record, "RATE_LIMITED")) {
    if (!rule.async && wasRemoved(record, call, reset)) continue;
    const isHere = (other: Call) => !rule.async || other.replica === call.replica;
    const passed = admissions.filter(
      (each) =>
        each.reset === reset && each.rule.async === rule.async && each.call.startMs <= call.endMs && isHere(each.call),
    );
    const mayHold = record.calls.filter((other) => {
      const code = bodyOf(other, "verifyKey")?.code;
      const isVerification = code !== undefined ? code !== "RATE_LIMITED" : other.operation.kind === "verifyKey";
      const isUnderWay = other.startMs <= call.endMs && other.endMs >= call.startMs;
      return isVerification && isUnderWay && isHere(other) && !passed.some((each) => each.call === other);
    });
    const limits = versionsInForce(record, call, deadline).map(({ fields }) => fields.ratelimit?.limit ?? Infinity);
    const places = passed.length + mayHold.length;
    if (places >= Math.min(...limits)) continue;
    const text = `refused by the window until ${reset}, of which ${places} of ${Math.min(...limits)} were taken`;
    problems.push({ rule: "windows", keyId: record.keyId, text, calls: [...passed.map(({ call }) => call), call] });
  }
  return problems;
}

/** Whether the key may have been without a limit since the window opened. */
function wasRemoved({ versions }: KeyRecord, call: Call, reset: number): boolean {
  const opensMs = reset - Math.max(...versions.map(({ fields }) => fields.ratelimit?.duration ?? 0)) - roundingMs;
  return versions.some(
    ({ fields, call: change }) =>
      fields.ratelimit === undefined && change.startMs <= call.endMs && change.endClockMs >= opensMs,
  );
}
