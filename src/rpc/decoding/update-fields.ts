import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  getOption,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema, FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { absent_needs, Change, change } from "../../../gen/latchkey/v1/options_pb.js";
import type { Updates } from "../../../gen/latchkey/v1/updates.ts";
import { InvalidRequest, Violations } from "../invalid-request.ts";

/**
 * A request that changes something is a message with a field `update_mask`. Its fields with the option `(change)` are
 * what it can change; the others say what is changed, and on what condition. However the request came, after decoding
 * the mask names all fields that are to change: those that are set get a new value, the others are removed.
 */
export interface UpdateFields {
  readonly mask: DescField;
  /** By name in the proto file, in its order. */
  readonly changes: ReadonlyMap<string, ChangeField>;
}

interface ChangeField {
  readonly field: DescField;
  readonly canRemove: boolean;
}

export const CANNOT_BE_REMOVED = "cannot be removed; send a value or leave the field out";

const known = new WeakMap<DescMessage, UpdateFields | false>();

/** Undefined if the message is not an update. */
export function updateFieldsOf(desc: DescMessage): UpdateFields | undefined {
  let found = known.get(desc);
  if (found === undefined) {
    found = readUpdateFields(desc) ?? false;
    known.set(desc, found);
  }
  return found || undefined;
}

function readUpdateFields(desc: DescMessage): UpdateFields | undefined {
  const mask = desc.fields.find(({ message }) => message?.typeName === FieldMaskSchema.typeName);
  if (mask === undefined) return undefined;
  const changes = new Map<string, ChangeField>();
  for (const field of desc.fields) {
    const allowed = getOption(field, change);
    if (allowed === Change.UNSPECIFIED) continue;
    // Without it, zero could not be told from absent.
    if (field.presence === Presence.IMPLICIT && field.fieldKind !== "list") {
      throw new Error(`${field}: a field that an update changes must be optional`);
    }
    changes.set(field.name, { field, canRemove: allowed === Change.SET_OR_REMOVE });
  }
  return { mask, changes };
}

/** Completes an update that came as JSON: it changes the fields that the object has, `null` included. */
export function completeFromJson(desc: DescMessage, message: Message, isSent: (field: DescField) => boolean): void {
  const update = updateFieldsOf(desc);
  if (update === undefined) return;
  setMask(
    update,
    message,
    [...update.changes.values()].filter(({ field }) => isSent(field)),
  );
}

/**
 * Completes an update that came in binary. With a mask it changes the fields that the mask names, and removes those of
 * them that are absent; what the mask does not name is dropped. Without one it changes the fields that are present.
 */
export function completeFromBinary(desc: DescMessage, message: Message): void {
  const update = updateFieldsOf(desc);
  const violations = new Violations();
  if (update === undefined) {
    checkEmptyLists(desc, message, desc.fields, violations);
    violations.throwIfAny();
    return;
  }
  const mask = (message as unknown as Record<string, FieldMask | undefined>)[update.mask.localName];
  const named = mask && readPaths(update, mask.paths, violations);
  const changed = [...update.changes.values()].filter(({ field, canRemove }) => {
    const isSet = isFieldSet(message, field);
    if (named === undefined) return isSet;
    const isNamed = named.has(field.name);
    if (!isNamed) clearField(message, field);
    // An empty list is a value, unless its absence means something.
    else if (!isSet && !canRemove && field.fieldKind !== "list") violations.add(field.jsonName, CANNOT_BE_REMOVED);
    return isNamed;
  });
  const fields = changed.map(({ field }) => field);
  checkEmptyLists(desc, message, fields, violations);
  violations.throwIfAny();
  setMask(update, message, changed);
}

/** Refuses an empty list whose absence means more than any of its values, unless another field says that it is intended. */
function checkEmptyLists(
  desc: DescMessage,
  message: Message,
  fields: readonly DescField[],
  violations: Violations,
): void {
  for (const [field, needed] of confirmedLists(desc)) {
    if (!fields.includes(field) || isFieldSet(message, field)) continue;
    if ((message as unknown as Record<string, unknown>)[needed.localName] === true) continue;
    violations.add(field.jsonName, `must not be empty; if that is intended, send ${needed.name}`);
  }
}

const knownLists = new WeakMap<DescMessage, ReadonlyMap<DescField, DescField>>();

/** The lists of a message that may be empty only if another field says so, with that field. */
function confirmedLists(desc: DescMessage): ReadonlyMap<DescField, DescField> {
  let lists = knownLists.get(desc);
  if (lists === undefined) {
    lists = new Map(
      desc.fields.flatMap((field) => {
        const name = getOption(field, absent_needs);
        if (name === "") return [];
        const needed = desc.fields.find((other) => other.name === name);
        if (needed === undefined) throw new Error(`${field}: there is no field ${name}`);
        return [[field, needed] as const];
      }),
    );
    knownLists.set(desc, lists);
  }
  return lists;
}

function readPaths({ mask, changes }: UpdateFields, paths: readonly string[], violations: Violations): Set<string> {
  const named = new Set<string>();
  for (const path of paths) {
    if (!changes.has(path)) {
      violations.add(mask.jsonName, `names a field that cannot be changed (known: ${[...changes.keys()].join(", ")})`);
    } else if (named.has(path)) {
      violations.add(mask.jsonName, "names a field twice");
    }
    named.add(path);
  }
  return named;
}

function setMask({ mask, changes }: UpdateFields, message: Message, changed: readonly ChangeField[]): void {
  if (changed.length === 0) {
    const names = Array.from(changes.values(), ({ field }) => field.jsonName).join(", ");
    throw new InvalidRequest([{ path: "", message: `changes nothing; send at least one of ${names}` }]);
  }
  const paths = changed.map(({ field }) => field.name);
  (message as unknown as Record<string, FieldMask>)[mask.localName] = create(FieldMaskSchema, { paths });
}

/** What an update changes, by name: `null` removes the field, a value sets it, and what is absent stays as it is. */
export function changesOf<Update extends Message & { readonly $typeName: keyof Updates }>(
  desc: DescMessage,
  message: Update,
): Updates[Update["$typeName"]] {
  const update = updateFieldsOf(desc);
  if (update === undefined) throw new Error(`${desc} is not an update`);
  const values = message as unknown as Record<string, unknown>;
  const { paths } = values[update.mask.localName] as FieldMask;
  const entries = paths.map((path) => {
    const { field, canRemove } = update.changes.get(path) as ChangeField;
    const isRemoved = canRemove && !isFieldSet(message, field);
    return [field.localName, isRemoved ? null : values[field.localName]];
  });
  return Object.fromEntries(entries) as Updates[Update["$typeName"]];
}
