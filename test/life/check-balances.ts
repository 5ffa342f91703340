import type { KeyRecord, Problem } from "./key-record.ts";
import { bodyOf, type Call, isKind, type ReadKey } from "./operations.ts";

/* Whether a key's counter can have been changed and used one step at a time: linearizability of a single number. */

/** The balance, or one of these. */
type State = number;
const none: State = -1;
const gone: State = -2;

/** What a call did to the counter at one moment between its start and its end. */
interface Step {
  readonly call: Call;
  /** The state after it; undefined if it cannot have been done in this state. */
  after(state: State): State | undefined;
  /** It changes nothing, so that doing it as soon as it can be done leaves every choice open. */
  readonly isRead: boolean;
  /** A use without an answer. All of them are alike, so that only their number counts. */
  readonly isLostUse: boolean;
}

/** One way in which everything so far can have happened. */
interface Way {
  readonly state: State;
  /** Steps that were done in it although their calls have not ended. */
  readonly done: ReadonlySet<Step>;
  readonly lostUses: number;
}

/**
 * Goes through the starts and ends of all calls. At each end the call must have been done: every way in which the calls
 * before can have happened is continued in all orders of calls under way until this call is done. No way left: a problem.
 */
export function checkBalances(record: KeyRecord): Problem[] {
  const first = initialState(record.made);
  const moments = momentsOf(stepsOf(record));
  let ways: Way[] = [{ state: first, done: new Set(), lostUses: 0 }];
  const open = new Set<Step>();
  let lostBegun = 0;
  for (const { step, isStart } of moments) {
    if (isStart) {
      if (step.isLostUse) lostBegun++;
      else open.add(step);
      continue;
    }
    const next = waysWith(step, ways, open, lostBegun);
    if (next.length === 0) return [problemWith(record, step, ways, open, lostBegun)];
    open.delete(step);
    ways = distinct(next.map((way) => ({ ...way, done: without(way.done, step) })));
  }
  return [];
}

function initialState({ operation }: Call): State {
  return "remaining" in operation ? (operation.remaining ?? none) : none;
}

function stepsOf({ calls, reads }: KeyRecord): Step[] {
  const listed = reads.filter(({ call }) => isKind(call, "listKeys"));
  const steps = [...calls.map(stepOf), ...listed.map(({ call, key }) => readStep(call, key))];
  return steps.filter((step) => step !== undefined);
}

function stepOf(call: Call): Step | undefined {
  const { operation, answer } = call;
  const step = (after: Step["after"], isRead = false): Step => ({ call, after, isRead, isLostUse: false });
  if (answer.status === "notFound") return step((state) => (state === gone ? gone : undefined), true);
  switch (operation.kind) {
    case "verifyKey": {
      if (answer.status === "unknown") {
        return { call, after: (state) => (state > 0 ? state - 1 : undefined), isRead: false, isLostUse: true };
      }
      const { code, remaining } = bodyOf(call, "verifyKey") ?? {};
      if (remaining === undefined) return undefined;
      if (code === "VALID") return step((state) => (state === remaining + 1 ? remaining : undefined));
      if (code === "USAGE_EXCEEDED") return step((state) => (state === 0 && remaining === 0 ? 0 : undefined), true);
      return undefined;
    }
    case "updateRemaining": {
      const { op, value } = operation;
      const target = (state: State): State | undefined => {
        if (state === gone) return undefined;
        if (op === "set") return value ?? none;
        const after = op === "increment" ? state + (value ?? 0) : state - (value ?? 0);
        return state === none || after < 0 ? undefined : after;
      };
      if (answer.status === "unknown") return step(target);
      if (answer.status === "conflict") {
        return step((state) => (state !== gone && target(state) === undefined ? state : undefined), true);
      }
      const answered = bodyOf(call, "updateRemaining")?.remaining ?? none;
      return step((state) => (target(state) === answered ? answered : undefined));
    }
    case "deleteKey":
      return step((state) => (state === gone ? undefined : gone));
    case "getKey":
    case "updateKey": {
      const key = bodyOf(call, operation.kind);
      return key && readStep(call, key);
    }
    case "rerollKey":
      return answer.status === "done" ? step((state) => (state === gone ? undefined : state), true) : undefined;
    default:
      return undefined;
  }
}

function readStep(call: Call, { remaining = none }: ReadKey): Step {
  return { call, after: (state) => (state === remaining ? state : undefined), isRead: true, isLostUse: false };
}

/** Starts before ends where both are at the same time: then the calls may have overlapped. */
function momentsOf(steps: readonly Step[]): { step: Step; isStart: boolean }[] {
  const moments = steps.flatMap((step) => [
    { step, isStart: true, atMs: step.call.startMs },
    ...(step.call.endMs === Infinity ? [] : [{ step, isStart: false, atMs: step.call.endMs }]),
  ]);
  return moments.sort((a, b) => a.atMs - b.atMs || Number(b.isStart) - Number(a.isStart));
}

/** Every way in which this step is done, too. */
function waysWith(step: Step, ways: readonly Way[], open: ReadonlySet<Step>, lostBegun: number): Way[] {
  const known = new Set<string>();
  const found: Way[] = [];
  const pending: Way[] = [];
  const add = (way: Way) => {
    const settled = withReads(way, open);
    const name = nameOf(settled);
    if (known.has(name)) return;
    known.add(name);
    (settled.done.has(step) ? found : pending).push(settled);
  };
  for (const way of ways) add(way);
  for (let way = pending.pop(); way !== undefined; way = pending.pop()) {
    for (const other of open) {
      const after = way.done.has(other) || other.isRead ? undefined : other.after(way.state);
      if (after !== undefined) add({ ...way, state: after, done: new Set([...way.done, other]) });
    }
    if (way.lostUses < lostBegun && way.state > 0) {
      add({ ...way, state: way.state - 1, lostUses: way.lostUses + 1 });
    }
  }
  return found;
}

function withReads(way: Way, open: ReadonlySet<Step>): Way {
  const reads = [...open].filter((step) => step.isRead && !way.done.has(step) && step.after(way.state) !== undefined);
  return reads.length === 0 ? way : { ...way, done: new Set([...way.done, ...reads]) };
}

function without(done: ReadonlySet<Step>, step: Step): ReadonlySet<Step> {
  const left = new Set(done);
  left.delete(step);
  return left;
}

function distinct(ways: readonly Way[]): Way[] {
  return [...new Map(ways.map((way) => [nameOf(way), way])).values()];
}

function nameOf({ state, done, lostUses }: Way): string {
  const numbers = [...done].map(({ call }) => call.number).sort((a, b) => a - b);
  return `${state}/${lostUses}/${numbers.join()}`;
}

function problemWith(
  { keyId }: KeyRecord,
  step: Step,
  ways: readonly Way[],
  open: ReadonlySet<Step>,
  lostBegun: number,
): Problem {
  const states = [...new Set(ways.map(({ state }) => (state === none ? "none" : state === gone ? "gone" : state)))];
  const lost = lostBegun > 0 ? `, ${lostBegun} uses without an answer` : "";
  const text = `no order explains this answer; the balance was ${states.join(" or ")} before the calls under way${lost}`;
  return { rule: "balances", keyId, text, calls: [...new Set([step.call, ...[...open].map(({ call }) => call)])] };
}
