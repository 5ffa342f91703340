import { fieldsIn, type KeyRecord, type Problem, print, type Version } from "./key-record.ts";
import { bodyOf, type Call, type History, isKind, type Verification } from "./operations.ts";

/** A change is in force on all replicas after this long, and immediately on the one that made it. */
const newsMs = 1000;

/** Until when a verification may go by what this call has replaced. */
type Deadline = (change: Call, verification: Call) => number;

/**
 * What verifications went by: one state of the key as a whole, and a code that follows from it. The state was in force at
 * some moment of the second before the verification began, or later; on the replica that replaced it, when it began.
 */
export function checkFields(record: KeyRecord, history: Pick<History, "standstillMs">): Problem[] {
  const mayBeSeenUntilMs = deadlineOf(history);
  const problems: Problem[] = [];
  for (const call of record.calls) {
    const seen = bodyOf(call, "verifyKey");
    if (seen === undefined) continue;
    const fault =
      seen.code === "NOT_FOUND"
        ? faultOfAbsence(record, call, mayBeSeenUntilMs)
        : faultOf(record, call, seen, mayBeSeenUntilMs);
    if (fault !== undefined) {
      problems.push({ rule: "fields", keyId: record.keyId, text: fault.text, calls: [...fault.changes, call] });
    }
  }
  return problems;
}

export function deadlineOf(history: Pick<History, "standstillMs">): Deadline {
  return (change, { replica, startMs }) =>
    change.replica === replica ? change.endMs : change.endMs + newsMs + history.standstillMs(change.startMs, startMs);
}

interface Fault {
  readonly text: string;
  readonly changes: readonly Call[];
}

function faultOf(record: KeyRecord, call: Call, seen: Verification, deadline: Deadline): Fault | undefined {
  const at = record.versions.findIndex(({ fields }) => fields.meta.change === seen.meta.change);
  const version = record.versions[at];
  if (version === undefined) return { text: "no change of this key made what was seen", changes: [] };
  if (version.call.startMs > call.endMs) return { text: "a change was seen before it began", changes: [version.call] };
  const replaced = [...record.versions.slice(at + 1).map(({ call }) => call), ...record.deletions];
  const missed = replaced.find((change) => deadline(change, call) < call.startMs);
  if (missed !== undefined) {
    const late = (call.startMs - missed.endMs).toFixed(1);
    const where = missed.replica === call.replica ? "here" : "on another replica";
    return {
      text: `went by version ${version.number}, replaced ${where} ${late} ms before`,
      changes: [version.call, missed],
    };
  }
  return (
    faultOfCode(version, call, seen) ??
    faultOfLimit(record, version, call, seen, deadline) ??
    faultOfCounter(record, call, seen, deadline) ??
    faultOfSecret(record, call, deadline)
  );
}

function faultOfCode({ call: made, fields, number }: Version, call: Call, seen: Verification): Fault | undefined {
  const { name, ownerId, expires } = seen;
  const { enabled, ratelimit } = fields;
  const shown = fieldsIn({ name, ownerId, meta: seen.meta, expires, enabled, ratelimit });
  const fault = (text: string) => ({ text: `${text}; version ${number} is ${print(fields)}`, changes: [made] });
  if (print(shown) !== print(fields)) return fault("showed a part of a change");
  if (!fields.enabled !== (seen.code === "DISABLED")) return fault("whether it is enabled was not gone by");
  const mayBeExpired = expires !== undefined && expires <= call.endClockMs;
  const isExpired = expires !== undefined && expires <= call.startClockMs;
  if (seen.code === "EXPIRED" ? !mayBeExpired : isExpired && seen.code !== "DISABLED") {
    return fault("when it expires was not gone by");
  }
  if ((seen.ratelimit === undefined) !== (fields.ratelimit === undefined)) return fault("its limit was not gone by");
  if (seen.code === "RATE_LIMITED" && fields.ratelimit === undefined) return fault("limited without a limit");
  return undefined;
}

/** The ledger of strict limits may know a newer one than the replica. */
function faultOfLimit(
  record: KeyRecord,
  { fields, call: made }: Version,
  call: Call,
  { ratelimit }: Verification,
  deadline: Deadline,
): Fault | undefined {
  if (ratelimit === undefined || ratelimit.limit === fields.ratelimit?.limit) return undefined;
  const possible = fields.ratelimit?.async ? [] : versionsInForce(record, call, deadline);
  if (possible.some(({ fields }) => fields.ratelimit?.limit === ratelimit.limit)) return undefined;
  return { text: `a limit of ${ratelimit.limit} was not in force`, changes: [made] };
}

/** The states that the verification may have gone by. */
export function versionsInForce({ versions }: KeyRecord, call: Call, deadline: Deadline): Version[] {
  return versions.filter(
    (version, at) =>
      version.call.startMs <= call.endMs &&
      versions.slice(at + 1).every((later) => deadline(later.call, call) >= call.startMs),
  );
}

/** Whether it has a counter at all. That changes with `set` only; the order of these changes is known by their times. */
function faultOfCounter(
  { made, calls }: KeyRecord,
  call: Call,
  seen: Verification,
  deadline: Deadline,
): Fault | undefined {
  const hasCounter = seen.remaining !== undefined;
  const changes = calls.filter(
    (change) =>
      isKind(change, "updateRemaining") &&
      change.operation.op === "set" &&
      (change.answer.status === "done" || change.answer.status === "unknown"),
  );
  const gives = ({ operation }: Call) =>
    operation.kind === "updateRemaining"
      ? operation.value !== null
      : "remaining" in operation && operation.remaining !== undefined;
  const isInForce = (change: Call) =>
    change.startMs <= call.endMs &&
    !changes.some((later) => later.startMs > change.endMs && deadline(later, call) < call.startMs);
  if ([made, ...changes].some((change) => gives(change) === hasCounter && isInForce(change))) return undefined;
  return {
    text: hasCounter ? "it had no counter" : "it had a counter, which was not gone by",
    changes: changes.slice(-2),
  };
}

/** A secret lives from the call that made it until its end; the end is known wherever the replacement is. */
function faultOfSecret(record: KeyRecord, call: Call, deadline: Deadline): Fault | undefined {
  const { origin, rerolls } = rerollsAfter(record, call);
  if (origin === undefined) return undefined;
  const isAfter = (reroll: Call, earlier: Call) => reroll.startMs > earlier.endMs;
  const first = rerolls.find((reroll) => isAfter(reroll, origin));
  if (first === undefined) return undefined;
  // One of these replaced it: which one, times do not tell.
  const replacements = rerolls.filter((reroll) => !isAfter(reroll, first));
  const mayLive = replacements.some(
    (reroll) => deadline(reroll, call) >= call.startMs || reroll.endClockMs + overlapOf(reroll) >= call.startClockMs,
  );
  if (!mayLive) return { text: "a secret that had ended was taken", changes: [origin, ...replacements] };
  const second = rerolls.find((reroll) => isAfter(reroll, first));
  if (second === undefined || deadline(second, call) >= call.startMs) return undefined;
  return { text: "a secret that was replaced twice was taken", changes: [origin, first, second] };
}

function faultOfAbsence(record: KeyRecord, call: Call, deadline: Deadline): Fault | undefined {
  const { made } = record;
  // Other replicas learn that imported keys exist, whose texts have no checksum of ours, as they learn of any change.
  if (isKind(made, "importKeys") && deadline(made, call) >= call.startMs) return undefined;
  if (record.deletions.some(({ startMs }) => startMs <= call.endMs)) return undefined;
  const rerolls = rerollsAfter(record, call).rerolls.filter(({ startMs }) => startMs <= call.endMs);
  const hasEnded = rerolls.some((reroll) => reroll.startClockMs + overlapOf(reroll) <= call.endClockMs);
  return hasEnded || rerolls.length > 1 ? undefined : { text: "a key that was there was not found", changes: rerolls };
}

function overlapOf({ operation }: Call): number {
  return operation.kind === "rerollKey" ? operation.overlap : 0;
}

/** The call that made the secret of a verification, and those that may have replaced it, in the order of their starts. */
function rerollsAfter({ calls, made }: KeyRecord, call: Call): { origin: Call | undefined; rerolls: Call[] } {
  const secret = isKind(call, "verifyKey") ? call.operation.secret : "";
  const makes = (maker: Call) =>
    (bodyOf(maker, "createKey") ?? bodyOf(maker, "rerollKey"))?.key === secret ||
    (isKind(maker, "importKeys") && maker.operation.secret === secret);
  const origin = [made, ...calls].find(makes);
  const mayReplace = (reroll: Call) =>
    isKind(reroll, "rerollKey") &&
    (reroll.answer.status === "done" || reroll.answer.status === "unknown") &&
    reroll !== origin &&
    (origin === undefined || reroll.endMs >= origin.startMs);
  return { origin, rerolls: calls.filter(mayReplace) };
}
