import {
  bodyOf,
  type Call,
  type FieldChanges,
  type History,
  isKind,
  type KeyFields,
  keyIdOf,
  type LoggedEvent,
  type ReadKey,
} from "./operations.ts";

/** Something that a service should not have done. */
export interface Problem {
  readonly rule: string;
  readonly keyId: string;
  readonly text: string;
  /** The calls that show it. */
  readonly calls: readonly Call[];
}

/** A state of a key's fields, from the change that made it until the next one. Counters and secrets are not in it. */
export interface Version {
  readonly number: number;
  readonly call: Call;
  readonly fields: KeyFields;
}

/** Everything in a history that is about one key. */
export interface KeyRecord {
  readonly keyId: string;
  readonly made: Call;
  /** In the order of their starts; without listings. */
  readonly calls: readonly Call[];
  /** The key as calls have read it, listings included. */
  readonly reads: readonly { readonly call: Call; readonly key: ReadKey }[];
  readonly versions: readonly Version[];
  /** Those that deleted it, or may have. */
  readonly deletions: readonly Call[];
  /** In the order of their versions. */
  readonly events: readonly LoggedEvent[];
  readonly problems: readonly Problem[];
}

export function recordsOf({ calls, events }: History): KeyRecord[] {
  const inOrder = [...calls].sort((a, b) => a.startMs - b.startMs);
  const byKey = new Map<string, Call[]>();
  const listed = new Map<string, { call: Call; key: ReadKey }[]>();
  for (const call of inOrder) {
    const keyId = keyIdOf(call);
    if (keyId !== undefined) addTo(byKey, keyId, call);
    for (const key of bodyOf(call, "listKeys")?.keys ?? []) addTo(listed, key.keyId, { call, key });
  }
  const eventsOf = new Map<string, LoggedEvent[]>();
  for (const event of events) addTo(eventsOf, event.targetId, event);
  return [...byKey].flatMap(([keyId, own]) => {
    const made = own.find((call) => isKind(call, "createKey") || isKind(call, "importKeys"));
    return made === undefined ? [] : [recordOf(keyId, made, own, eventsOf.get(keyId) ?? [], listed.get(keyId) ?? [])];
  });
}

function recordOf(
  keyId: string,
  made: Call,
  calls: readonly Call[],
  unsorted: readonly LoggedEvent[],
  listed: readonly { call: Call; key: ReadKey }[],
): KeyRecord {
  const events = [...unsorted].sort((a, b) => a.version - b.version);
  const read = calls.flatMap((call) => {
    const key = bodyOf(call, "getKey") ?? bodyOf(call, "updateKey");
    return key === undefined ? [] : [{ call, key }];
  });
  const isDeletion = (call: Call) =>
    isKind(call, "deleteKey") && (call.answer.status === "done" || call.answer.status === "unknown");
  const { versions, problems } = versionsOf(keyId, made, calls, events);
  return {
    keyId,
    made,
    calls,
    reads: [...read, ...listed],
    versions,
    deletions: calls.filter(isDeletion),
    events,
    problems,
  };
}

/** What every change made of the key, in the order of the versions. */
function versionsOf(keyId: string, made: Call, calls: readonly Call[], events: readonly LoggedEvent[]) {
  const problems: Problem[] = [];
  const claimed = new Map<number, Call>([[1, made]]);
  const updates = calls.filter((call) => isKind(call, "updateKey"));
  for (const call of updates) {
    const version = bodyOf(call, "updateKey")?.version;
    if (version === undefined) continue;
    const other = claimed.get(version);
    if (other !== undefined) {
      problems.push({ rule: "versions", keyId, text: `two changes made version ${version}`, calls: [other, call] });
    }
    claimed.set(version, call);
  }
  // Those without an answer: each tells by `ifVersion` or by its event which version it made, if it was made.
  const logged = events.filter(({ method }) => method === "keys.updateKey");
  for (const call of updates) {
    if (call.answer.status !== "unknown" || !isKind(call, "updateKey")) continue;
    const { ifVersion, changes } = call.operation;
    const fits = ({ version, fields }: LoggedEvent) =>
      !claimed.has(version) &&
      (ifVersion === undefined ? String([...fields].sort()) === String(fieldsOf(changes)) : version === ifVersion + 1);
    const event = logged.find(fits);
    if (event !== undefined) claimed.set(event.version, call);
  }
  const versions: Version[] = [];
  for (const [number, call] of [...claimed].sort(([a], [b]) => a - b)) {
    const { operation } = call;
    const read = bodyOf(call, "updateKey");
    const before = versions.at(-1)?.fields;
    const expected =
      operation.kind === "updateKey"
        ? applyChanges(before as KeyFields, operation.changes, read)
        : (operation as { fields: KeyFields }).fields;
    const fields = read === undefined ? expected : fieldsIn(read);
    if (!sameFields(fields, expected)) {
      const text = `version ${number} should be ${print(expected)} and was answered as ${print(fields)}`;
      problems.push({
        rule: "versions",
        keyId,
        text,
        calls: versions
          .slice(-1)
          .map((version) => version.call)
          .concat(call),
      });
    }
    versions.push({ number, call, fields });
  }
  return { versions, problems };
}

function applyChanges(before: KeyFields, changes: FieldChanges, answered: ReadKey | undefined): KeyFields {
  const after: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete after[name];
    else after[name] = value;
  }
  // A moment in the past means now, by the replica's clock: only the answer says when that was.
  const { expires } = changes;
  const now = answered?.expires;
  if (expires != null && now !== undefined && now > expires) after.expires = now;
  return after as unknown as KeyFields;
}

/** The names of the fields that a change is about, as its event has them. */
export function fieldsOf(changes: FieldChanges): readonly string[] {
  return Object.keys(changes).sort();
}

/** Without what is not a field of a key, or is not there. */
export function fieldsIn(key: MaybeUndefined<KeyFields>): KeyFields {
  const { name, ownerId, meta, enabled, expires, ratelimit } = key;
  return {
    meta,
    enabled,
    ...(name !== undefined && { name }),
    ...(ownerId !== undefined && { ownerId }),
    ...(expires !== undefined && { expires }),
    ...(ratelimit !== undefined && { ratelimit }),
  };
}

export function sameFields(a: KeyFields, b: KeyFields): boolean {
  return print(a) === print(b);
}

/** In one order of the names. */
export function print(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

type MaybeUndefined<T> = { readonly [Name in keyof T]: T[Name] | (undefined extends T[Name] ? undefined : never) };

function addTo<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [item]);
  else list.push(item);
}
