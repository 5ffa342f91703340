import { fieldsIn, type KeyRecord, type Problem, print, sameFields } from "./key-record.ts";
import { bodyOf, type Call, isKind } from "./operations.ts";

/** Versions follow each other in time, reads show the state of their version, and `ifVersion` is gone by. */
export function checkVersions(record: KeyRecord): Problem[] {
  return [...record.problems, ...checkReads(record), ...checkOrder(record), ...checkConflicts(record)];
}

function checkReads({ keyId, reads, versions }: KeyRecord): Problem[] {
  const problems: Problem[] = [];
  for (const { call, key } of reads) {
    const version = versions.findLast(({ number }) => number <= key.version);
    const text =
      version === undefined || sameFields(fieldsIn(key), version.fields)
        ? undefined
        : `version ${key.version} was read as ${print(fieldsIn(key))} and is ${print(version.fields)}`;
    if (text !== undefined)
      problems.push({ rule: "reads", keyId, text, calls: version ? [version.call, call] : [call] });
  }
  return problems;
}

interface Shown {
  readonly version: number;
  readonly call: Call;
}

/** A call that began after another had ended shows no older version. */
function checkOrder({ keyId, reads, versions, made }: KeyRecord): Problem[] {
  const shown = shownIn(reads, versions, made);
  const byEnd = [...shown].sort((a, b) => a.call.endMs - b.call.endMs);
  const byStart = [...shown].sort((a, b) => a.call.startMs - b.call.startMs);
  let highest: Shown | undefined;
  let at = 0;
  for (const { version, call } of byStart) {
    for (; at < byEnd.length && (byEnd[at] as Shown).call.endMs < call.startMs; at++) {
      if (highest === undefined || (byEnd[at] as Shown).version > highest.version) highest = byEnd[at];
    }
    if (highest === undefined || highest.version <= version) continue;
    const text = `version ${version} came after version ${highest.version}`;
    return [{ rule: "versions", keyId, text, calls: [highest.call, call] }];
  }
  return [];
}

function shownIn(reads: KeyRecord["reads"], versions: KeyRecord["versions"], made: Call): Shown[] {
  const read = reads.map(({ call, key }) => ({ version: key.version, call }));
  const unread = versions.filter(({ call }) => bodyOf(call, "updateKey") === undefined && call !== made);
  return [{ version: 1, call: made }, ...read, ...unread.map(({ number, call }) => ({ version: number, call }))];
}

function checkConflicts({ keyId, reads, versions, calls, made }: KeyRecord): Problem[] {
  const shown = shownIn(reads, versions, made);
  const problems: Problem[] = [];
  for (const call of calls) {
    if (!isKind(call, "updateKey")) continue;
    const { ifVersion } = call.operation;
    const version = bodyOf(call, "updateKey")?.version;
    const add = (text: string) => problems.push({ rule: "ifVersion", keyId, text, calls: [call] });
    if (version !== undefined && ifVersion !== undefined && version !== ifVersion + 1) {
      add(`a change of version ${ifVersion} made version ${version}`);
    }
    if (call.answer.status !== "conflict") continue;
    if (ifVersion === undefined) add("a conflict without ifVersion");
    const lowest = Math.max(...shown.filter((other) => other.call.endMs < call.startMs).map(({ version }) => version));
    const highest = Math.min(...shown.filter((other) => other.call.startMs > call.endMs).map(({ version }) => version));
    if (lowest === ifVersion && highest === ifVersion)
      add(`refused although the version was ${ifVersion} all the time`);
  }
  return problems;
}
