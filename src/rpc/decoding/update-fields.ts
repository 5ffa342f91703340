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
import { InvalidRequest, joinPath, Violations } from "../invalid-request.ts";

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
    changes.set(field.name, readChangeField(field, allowed === Change.SET_OR_REMOVE));
  }
  return { mask, changes };
}

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
  if (update !== undefined) setMask(update, message, pathsIn(update.changes, value as JsonObject, "", ""));
}

function pathsIn(changes: ChangeFields, object: JsonObject, within: string, jsonPath: string): string[] {
  return inside(changes, jsonPath, ({ field, parts }) => {
    if (!Object.hasOwn(object, field.jsonName)) return [];
    const value = object[field.jsonName];
    const path = joinPath(within, field.name);
    if (parts === undefined || field.fieldKind === "list" || value === null) return [path];
    return pathsIn(parts, value as JsonObject, path, joinPath(jsonPath, field.jsonName));
  });
}

/** The paths of all fields of a message. At least one of them has to change. An error lists each field once, by its own name. */
function inside(changes: ChangeFields, jsonPath: string, pathsOf: (change: ChangeField) => string[]): string[] {
  const paths = Array.from(changes.values(), pathsOf).flat();
  if (paths.length > 0) return paths;
  const named = [...changes.values()].filter(({ field }) => getOption(field, alias_of) === "");
  const names = named.map(({ field }) => field.jsonName).join(", ");
  throw new InvalidRequest([{ path: jsonPath, message: `changes nothing; send at least one of ${names}` }]);
}

/**
 * Completes an update that came in binary. With a mask it changes the fields that the mask names, and removes those of
 * them that are absent; what the mask does not name is dropped. Without one it changes the fields that are present. An empty
 * mask is none.
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
  const paths = mask?.paths.length
    ? new MaskReader(update, mask.paths, violations).apply(message)
    : pathsOfSet(update.changes, message, "", "");
  const isNamed = (field: DescField) => paths.includes(field.name);
  checkEmptyLists(desc, message, desc.fields.filter(isNamed), violations);
  violations.throwIfAny();
  setMask(update, message, paths);
}

/** Sets a mask that came in JSON, where fields have their JSON names: at least one. */
export function setJsonMask(desc: DescMessage, message: Message, jsonPaths: readonly string[]): void {
  const paths = jsonPaths.map((path) => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  setMask(updateFieldsOf(desc) as UpdateFields, message, paths);
}

function pathsOfSet(changes: ChangeFields, message: Message, within: string, jsonPath: string): string[] {
  return inside(changes, jsonPath, ({ field, parts }) => {
    if (!isFieldSet(message, field)) return [];
    const path = joinPath(within, field.name);
    if (parts === undefined || field.fieldKind === "list") return [path];
    return pathsOfSet(parts, valueIn(message, field) as Message, path, joinPath(jsonPath, field.jsonName));
  });
}

const IS_REQUIRED = "is required";

/** Applies a mask to a message: afterwards it has what the mask names, and nothing else that can be changed. */
class MaskReader {
  readonly #update: UpdateFields;
  readonly #violations: Violations;
  readonly #named = new Set<string>();

  constructor(update: UpdateFields, paths: readonly string[], violations: Violations) {
    this.#update = update;
    this.#violations = violations;
    for (const path of paths) this.#readPath(path);
  }

  #readPath(path: string): void {
    const { mask, changes } = this.#update;
    let within: ChangeFields | undefined = changes;
    for (const step of path.split(".")) {
      const found: ChangeField | undefined = within?.get(step);
      if (found === undefined) {
        const names = [...(within ?? changes).keys()].join(", ");
        this.#violations.add(mask.jsonName, `names a field that cannot be changed (known: ${names})`);
        return;
      }
      within = found.field.fieldKind === "list" ? undefined : found.parts;
    }
    if (this.#named.has(path)) this.#violations.add(mask.jsonName, "names a field twice");
    this.#named.add(path);
  }

  /** Returns the paths of all fields that change. */
  apply(message: Message): string[] {
    return this.#applyTo(this.#update.changes, message, "", "", false);
  }

  #applyTo(changes: ChangeFields, message: Message, within: string, jsonPath: string, isWhole: boolean): string[] {
    return Array.from(changes.values(), (change) => {
      const { field } = change;
      const path = joinPath(within, field.name);
      const fieldPath = joinPath(jsonPath, field.jsonName);
      if (isWhole || this.#named.has(path)) return this.#applyWhole(change, message, path, fieldPath, isWhole);
      if (this.#namesInside(path) && change.parts !== undefined) {
        const values = message as unknown as Record<string, unknown>;
        values[field.localName] ??= create(field.message as DescMessage);
        return this.#applyTo(change.parts, values[field.localName] as Message, path, fieldPath, false);
      }
      clearField(message, field);
      return [];
    }).flat();
  }

  #namesInside(path: string): boolean {
    return [...this.#named].some((named) => named.startsWith(`${path}.`));
  }

  #applyWhole(change: ChangeField, message: Message, path: string, jsonPath: string, isInside: boolean): string[] {
    const { field, canRemove, parts } = change;
    // An empty list is a value, unless its absence means something.
    if (!isFieldSet(message, field) && field.fieldKind !== "list") {
      if (!canRemove) this.#violations.add(jsonPath, isInside ? IS_REQUIRED : CANNOT_BE_REMOVED);
      this.#setRemoved(change, message);
      return [path];
    }
    if (parts === undefined) return [path];
    if (field.fieldKind !== "list")
      return this.#applyTo(parts, valueIn(message, field) as Message, path, jsonPath, true);
    (valueIn(message, field) as Message[]).forEach((item, index) => {
      this.#applyTo(parts, item, path, `${jsonPath}[${index}]`, true);
    });
    return [path];
  }

  #setRemoved({ field, removedValue }: ChangeField, message: Message): void {
    if (removedValue !== undefined) (message as unknown as Record<string, unknown>)[field.localName] = removedValue;
  }
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
    if (valueIn(message, needed) === true) continue;
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

function setMask({ mask }: UpdateFields, message: Message, paths: string[]): void {
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
  for (const path of (valueIn(message, update.mask) as FieldMask).paths) {
    addChange(changed, update.changes, message, path.split("."));
  }
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
