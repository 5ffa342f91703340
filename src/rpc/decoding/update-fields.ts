import {
  clearField,
  create,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema, FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { absent_needs, alias_of, Change, change, default_bool, items_by } from "../../../gen/latchkey/v1/options_pb.js";
import type { Updates } from "../../../gen/latchkey/v1/updates.ts";
import { invalid, joinPath, Violations } from "../invalid-request.ts";
import { memoized } from "../memoized.ts";

/**
 * A request that changes something is a message with a field `update_mask`. Its fields with the option `(change)` are
 * what it can change; the others say what is changed, and on what condition. A message in such a field is changed in part.
 *
 * However the request came, after decoding the mask names all fields that are to change, those inside messages too: those
 * that are set get a new value, the others are removed. A message that the mask names itself is removed. Items of a list
 * have no paths: what is set in one of them is to change.
 */
export interface UpdateFields {
  readonly mask: DescField;
  /** By name in the proto file, in its order. */
  readonly changes: ChangeFields;
}

export type ChangeFields = ReadonlyMap<string, ChangeField>;

export interface ChangeField {
  readonly field: DescField;
  readonly canRemove: boolean;
  /** What it is when it is removed. Undefined: absent. */
  readonly removedValue: boolean | undefined;
  /** The fields of the message in it, or of each message of its list, if they can be changed in part. */
  readonly parts: ChangeFields | undefined;
}

export const CANNOT_BE_REMOVED = "cannot be removed; send a value or leave the field out";

/** Undefined if the message is not an update. */
export const updateFieldsOf = memoized((desc: DescMessage): UpdateFields | undefined => {
  const mask = desc.fields.find(({ message }) => message?.typeName === FieldMaskSchema.typeName);
  if (mask === undefined) return undefined;
  const changes = new Map<string, ChangeField>();
  for (const field of desc.fields) {
    const allowed = getOption(field, change);
    if (allowed === Change.UNSPECIFIED) continue;
    // Without it, zero would look like absent.
    if (field.presence === Presence.IMPLICIT && field.fieldKind !== "list") {
      throw new Error(`${field}: a field that an update changes must be optional`);
    }
    changes.set(field.name, readChangeField(field, allowed === Change.SET_OR_REMOVE));
  }
  return { mask, changes };
});

function readChangeField(field: DescField, canRemove: boolean): ChangeField {
  const removedValue = hasOption(field, default_bool) ? getOption(field, default_bool) : undefined;
  return { field, canRemove, removedValue, parts: readParts(field) };
}

function readParts(field: DescField): ChangeFields | undefined {
  const { fieldKind, message } = field;
  const itemsBy = getOption(field, items_by);
  const hasParts = fieldKind === "message" ? message?.file.proto.package === field.parent.file.proto.package : itemsBy;
  if (!hasParts || message === undefined) return undefined;
  return new Map(
    message.fields
      .filter(({ name }) => name !== itemsBy)
      .map((part) => [part.name, readChangeField(part, !getOption(part, fieldRules).required)]),
  );
}

/** Completes an update that came as JSON: it changes the fields that the object has, `null` included. */
export function completeFromJson(desc: DescMessage, message: Message, value: JsonValue): void {
  const update = updateFieldsOf(desc);
  if (update === undefined) return;
  setMask(update, message, pathsIn(update.changes, value as JsonObject, valueInJson));
}

/** Undefined for a field that is absent, in JSON or in a message. */
type ValueIn<Holder> = (holder: Holder, field: DescField) => unknown;

const valueInJson: ValueIn<JsonObject> = (object, { jsonName }) =>
  Object.hasOwn(object, jsonName) ? object[jsonName] : undefined;

const valueIfSet: ValueIn<Message> = (message, field) =>
  isFieldSet(message, field) ? valueIn(message, field) : undefined;

/** The paths of all fields that are there. At least one of them has to change. An error lists each field once, by its own name. */
function pathsIn<Holder>(
  changes: ChangeFields,
  holder: Holder,
  read: ValueIn<Holder>,
  within = "",
  jsonPath = "",
): string[] {
  const paths = Array.from(changes.values(), ({ field, parts }) => {
    const value = read(holder, field);
    const path = joinPath(within, field.name);
    if (value === undefined) return [];
    if (parts === undefined || field.fieldKind === "list" || value === null) return [path];
    return pathsIn(parts, value as Holder, read, path, joinPath(jsonPath, field.jsonName));
  }).flat();
  if (paths.length > 0) return paths;
  const named = [...changes.values()].filter(({ field }) => getOption(field, alias_of) === "");
  const names = named.map(({ field }) => field.jsonName).join(", ");
  throw invalid(jsonPath, `changes nothing; send at least one of ${names}`);
}

/**
 * Completes an update that came in binary. With a mask it changes the fields that the mask names, and removes those of
 * them that are absent; what the mask does not name is dropped. Without one it changes the fields that are present. An empty
 * mask is none.
 */
export function completeFromBinary(desc: DescMessage, message: Message): void {
  const violations = new Violations();
  const update = updateFieldsOf(desc);
  const asked = update === undefined ? [] : (maskIn(update, message)?.paths ?? []);
  const paths =
    update &&
    (asked.length > 0 ? applyMask(update, asked, message, violations) : pathsIn(update.changes, message, valueIfSet));
  checkEmptyLists(message, paths ? desc.fields.filter(({ name }) => paths.includes(name)) : desc.fields, violations);
  violations.throwIfAny();
  if (update && paths) setMask(update, message, paths);
}

const IS_REQUIRED = "is required";

/**
 * Applies a mask to a message: afterwards it has what the mask names, and nothing else that can be changed. Returns the paths
 * of all fields that change.
 */
function applyMask(update: UpdateFields, paths: readonly string[], message: Message, violations: Violations): string[] {
  const named = readMask(update, paths, violations);
  return applyTo(update.changes, message, "", "", false);

  /** `isWhole`: the mask names the message itself, or what it is in. */
  function applyTo(
    changes: ChangeFields,
    message: Message,
    within: string,
    jsonPath: string,
    isWhole: boolean,
  ): string[] {
    return Array.from(changes.values(), ({ field, canRemove, removedValue, parts }) => {
      const path = joinPath(within, field.name);
      const fieldPath = joinPath(jsonPath, field.jsonName);
      const values = message as unknown as Record<string, unknown>;
      if (isWhole || named.has(path)) {
        // An empty list is a value, unless its absence means something.
        if (!isFieldSet(message, field) && field.fieldKind !== "list") {
          if (!canRemove) violations.add(fieldPath, isWhole ? IS_REQUIRED : CANNOT_BE_REMOVED);
          if (removedValue !== undefined) values[field.localName] = removedValue;
          return [path];
        }
        if (parts === undefined) return [path];
        const value = values[field.localName] as Message | Message[];
        if (!Array.isArray(value)) return applyTo(parts, value, path, fieldPath, true);
        for (const [index, item] of value.entries()) applyTo(parts, item, path, `${fieldPath}[${index}]`, true);
        return [path];
      }
      if (parts !== undefined && [...named].some((other) => other.startsWith(`${path}.`))) {
        values[field.localName] ??= create(field.message as DescMessage);
        return applyTo(parts, values[field.localName] as Message, path, fieldPath, false);
      }
      clearField(message, field);
      return [];
    }).flat();
  }
}

/** The paths of a mask, without those that are not known. */
function readMask({ mask, changes }: UpdateFields, paths: readonly string[], violations: Violations): Set<string> {
  const named = new Set<string>();
  for (const path of paths) {
    let within: ChangeFields | undefined = changes;
    let field: ChangeField | undefined;
    for (const step of path.split(".")) {
      field = within?.get(step);
      if (field === undefined) {
        const names = [...(within ?? changes).keys()].join(", ");
        violations.add(mask.jsonName, `names a field that cannot be changed (known: ${names})`);
        break;
      }
      within = field.field.fieldKind === "list" ? undefined : field.parts;
    }
    if (field === undefined) continue;
    if (named.has(path)) violations.add(mask.jsonName, "names a field twice");
    named.add(path);
  }
  return named;
}

/** Refuses an empty list whose absence means more than any of its values, unless another field says that it is intended. */
function checkEmptyLists(message: Message, fields: readonly DescField[], violations: Violations): void {
  for (const field of fields) {
    const needed = confirmationOf(field);
    if (needed === undefined || isFieldSet(message, field) || valueIn(message, needed) === true) continue;
    violations.add(field.jsonName, `must not be empty; if that is intended, send ${needed.name}`);
  }
}

/** The field that says that an empty list is intended, where one has to. */
const confirmationOf = memoized((field: DescField): DescField | undefined => {
  const name = getOption(field, absent_needs);
  const needed = field.parent.fields.find((other) => other.name === name);
  if (name !== "" && needed === undefined) throw new Error(`${field}: there is no field ${name}`);
  return needed;
});

export function maskIn({ mask }: UpdateFields, message: Message): FieldMask | undefined {
  return valueIn(message, mask) as FieldMask | undefined;
}

export function setMask({ mask }: UpdateFields, message: Message, paths: string[]): void {
  (message as unknown as Record<string, FieldMask>)[mask.localName] = create(FieldMaskSchema, { paths });
}

/** What an update changes, by name: `null` removes the field, a value sets it, and what is absent stays as it is. */
export function changesOf<Update extends Message & { readonly $typeName: keyof Updates }>(
  desc: DescMessage,
  message: Update,
): Updates[Update["$typeName"]] {
  const update = updateFieldsOf(desc);
  if (update === undefined) throw new Error(`${desc} is not an update`);
  const changed: Record<string, unknown> = {};
  for (const path of maskIn(update, message)?.paths ?? []) addChange(changed, update.changes, message, path.split("."));
  return changed as Updates[Update["$typeName"]];
}

function addChange(
  changed: Record<string, unknown>,
  changes: ChangeFields,
  message: Message,
  [name = "", ...rest]: readonly string[],
): void {
  const change = changes.get(name) as ChangeField;
  const { localName } = change.field;
  if (rest.length === 0) {
    changed[localName] = changedValue(change, message);
    return;
  }
  changed[localName] ??= {};
  const inner = valueIn(message, change.field) as Message;
  addChange(changed[localName] as Record<string, unknown>, change.parts as ChangeFields, inner, rest);
}

function changedValue({ field, canRemove, removedValue, parts }: ChangeField, message: Message): unknown {
  const value = valueIn(message, field);
  if (canRemove && removedValue === undefined && !isFieldSet(message, field)) return null;
  return parts !== undefined && Array.isArray(value) ? value.map((item: Message) => setFieldsOf(field, item)) : value;
}

/** What is set in one message of a list. */
function setFieldsOf({ message }: DescField, item: Message): Record<string, unknown> {
  const set = (message as DescMessage).fields.filter((field) => isFieldSet(item, field));
  return Object.fromEntries(set.map((field) => [field.localName, valueIn(item, field)]));
}

/** Which fields the update was about, for the log. */
export function changedFields({ updateMask }: { readonly updateMask?: FieldMask | undefined }): string {
  return [...new Set(updateMask?.paths.map((path) => path.split(".", 1)[0]))].join();
}

function valueIn(message: Message, { localName }: DescField): unknown {
  return (message as unknown as Record<string, unknown>)[localName];
}
