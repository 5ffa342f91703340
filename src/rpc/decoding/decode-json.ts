import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { absent_means_all, read_as } from "../../../gen/latchkey/v1/options_pb.js";
import { nearestName } from "../../domain/suggest.ts";
import { joinPath, Violations } from "../invalid-request.ts";
import { memoized } from "../memoized.ts";
import { refuseDifferentNames } from "./aliases.ts";
import { type FieldSizes, sizesOf, tooLong, tooManyItems } from "./field-sizes.ts";
import { parseJson, type Trail } from "./parse-json.ts";
import {
  CANNOT_BE_REMOVED,
  type ChangeField,
  type ChangeFields,
  completeFromJson,
  updateFieldsOf,
} from "./update-fields.ts";

/**
 * Decodes a JSON body into a message, or throws a `InvalidRequest` that lists what is wrong with it.
 *
 * Stricter than protobuf's own JSON mapping, which accepts numbers as strings, ignores or repeats unknown fields, and
 * has two names for each field. The error contains no name or value from the caller: a whole key can be in the place of
 * a name.
 */
export function decodeJson<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  const value = parseJson(bytes, (trail) => printKnownPath(desc, trail));
  return readJson(desc, value, new Violations());
}

/** Reads a message from JSON that is parsed already. Throws `InvalidRequest` also for the violations found before. */
export function readJson<Desc extends DescMessage>(
  desc: Desc,
  value: JsonValue,
  violations: Violations,
): MessageShape<Desc> {
  const message = messageReader(desc)(value, "", violations) as MessageShape<Desc>;
  violations.throwIfAny();
  completeFromJson(desc, message, value);
  return message;
}

/** The path as far as the contract names it. It ends before an unknown name, and at free JSON, whose names are data. */
export function printKnownPath(desc: DescMessage, trail: Trail): string {
  let path = "";
  let message: DescMessage | undefined = desc;
  for (const step of trail) {
    if (typeof step === "number") {
      path += `[${step}]`;
    } else {
      const field: DescField | undefined = message?.fields.find(({ jsonName }) => jsonName === step);
      if (field === undefined) return path;
      path = joinPath(path, field.jsonName);
      if (isStruct(field)) return path;
      message = field.message;
    }
  }
  return path;
}

/** Returns the value for the message, or adds to `violations` and returns something that is then never used. */
type Reader = (value: JsonValue, path: string, violations: Violations) => unknown;

/**
 * Compiles a message once. A field that this file cannot read fails on every request of its method, from the first on.
 * A message that contains itself would never finish compiling; no request message does.
 */
export const messageReader: (desc: DescMessage) => Reader = memoized((desc) => {
  const update = updateFieldsOf(desc);
  const fields = desc.fields.filter((field) => field !== update?.mask);
  return objectReader(desc, fields, update?.changes);
});

/** `changes` are those of an update, or the parts of a message that an update changes in part. */
function objectReader(desc: DescMessage, known: readonly DescField[], changes: ChangeFields | undefined): Reader {
  const fields = new Map(
    known.map((field) => [field.jsonName, { field, read: fieldReader(field, changes?.get(field.name)) }] as const),
  );
  const ignored = readOnlyNames(desc);
  return (value, path, violations) => {
    if (!isObject(value)) return violations.add(path, "must be an object");
    const init: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(value)) {
      if (ignored.has(name)) continue;
      const known = fields.get(name);
      if (known === undefined) addUnknownField(path, name, [...fields.keys()], violations);
      else init[known.field.localName] = known.read(inner, joinPath(path, name), violations);
    }
    refuseDifferentNames(desc, value, path, violations);
    return create(desc, init);
  };
}

/** What callers read beside the fields of the message, and may send back. */
function readOnlyNames(desc: DescMessage): ReadonlySet<string> {
  const read = getOption(desc, read_as).flatMap(
    (name) => desc.file.messages.find((message) => message.name === name) ?? [],
  );
  const names = new Set(read.flatMap(({ fields }) => fields.map(({ jsonName }) => jsonName)));
  for (const { jsonName } of desc.fields) names.delete(jsonName);
  return names;
}

/**
 * `JSON.stringify` writes NaN as null: taken for "absent", `remaining: null` would issue a key without a limit. In a request
 * that changes something null means "remove". Elsewhere it is taken for a list only, and only where `[]` is refused: generated
 * clients have to send one of the two for a list that is not used.
 */
const NULL_REFUSED = "must not be null; send a value or leave the field out";

/** In a message an empty list looks like an absent one. Where that means "all" or "remove", it is refused. */
function refusalOfEmpty(field: DescField, change: ChangeField | undefined): string | undefined {
  if (field.fieldKind !== "list") return undefined;
  if (change?.canRemove) return "must not be empty; null removes it";
  return getOption(field, absent_means_all) ? "must not be empty; leave it out" : undefined;
}

/** The message about an unknown name. It contains only known names. */
function addUnknownField(path: string, name: string, known: readonly string[], violations: Violations): void {
  const suggestion = suggestName(name, known);
  const hint = suggestion === undefined ? ` (known: ${known.join(", ") || "none"})` : `; did you mean ${suggestion}?`;
  violations.add(path, `has an unknown field${hint}`);
}

/** The known name nearest to what the caller wrote: another spelling of it, or two typing errors away, of a short one fewer. */
function suggestName(name: string, known: readonly string[]): string | undefined {
  // A longer name is not a misspelt field. This bounds the work for a name of 64 KiB.
  if (name.length > COMPARED_LENGTH_MAX) return undefined;
  const folded = foldName(name);
  const respelt = known.find((candidate) => foldName(candidate) === folded);
  return respelt ?? nearestName(name, known, (candidate) => Math.min(2, candidate.length / 2));
}

const COMPARED_LENGTH_MAX = 64;

function foldName(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

function fieldReader(field: DescField, change: ChangeField | undefined): Reader {
  if (field.oneof !== undefined || field.fieldKind === "map") throw unsupported(field);
  const readOne = change === undefined ? singleReader(field) : changeReader(field, change);
  const read = field.fieldKind === "list" ? listReader(readOne, sizesOf(field)) : readOne;
  const canBeNull = change === undefined ? getOption(field, absent_means_all) : change.canRemove;
  const onNull = change === undefined ? NULL_REFUSED : CANNOT_BE_REMOVED;
  const onEmpty = refusalOfEmpty(field, change);
  return (value, path, violations) => {
    // In an update the field stays absent too, or becomes what absent means: `completeFromJson` names it in the mask.
    if (value === null) return canBeNull ? change?.removedValue : violations.add(path, onNull);
    if (onEmpty !== undefined && Array.isArray(value) && value.length === 0) return violations.add(path, onEmpty);
    return read(value, path, violations);
  };
}

/** In an update: a message that it changes in part has only what is to change. */
function changeReader(field: DescField, { parts, canRemove }: ChangeField): Reader {
  if (parts !== undefined && field.message !== undefined) {
    return objectReader(field.message, field.message.fields, parts);
  }
  const read = singleReader(field);
  // In a message a number 0 or an empty text would look like an absent one, which stays as it is.
  if (canRemove || field.presence !== Presence.IMPLICIT || field.fieldKind !== "scalar") return read;
  return (value, path, violations) => {
    if (value === 0 || value === "") return violations.add(path, value === 0 ? "must not be 0" : "must not be empty");
    return read(value, path, violations);
  };
}

/** Reads a singular field, or one element of a list. */
function singleReader(field: DescField): Reader {
  if (field.enum !== undefined) return enumReader(field.enum);
  if (isStruct(field)) return readStruct;
  // Every other well-known type has a JSON form of its own.
  if (field.message?.file.proto.package === "google.protobuf") throw unsupported(field);
  // Only a whole request can be an update: its mask names top-level fields.
  if (field.message !== undefined && updateFieldsOf(field.message)) throw unsupported(field);
  if (field.message !== undefined) return messageReader(field.message);
  if (field.scalar === ScalarType.STRING) return textReader(sizesOf(field));
  if (field.scalar === ScalarType.BOOL) return typeReader("boolean");
  if (field.scalar === ScalarType.DOUBLE) return typeReader("number");
  if (field.scalar === ScalarType.INT32) return wholeNumberReader(field, -(2 ** 31), 2 ** 31 - 1);
  if (field.scalar === ScalarType.UINT32) return wholeNumberReader(field, 0, 2 ** 32 - 1);
  throw unsupported(field);
}

/** A text that is only somewhat too long is found when the rules are checked. */
function textReader(sizes: FieldSizes): Reader {
  return (value, path, violations) => {
    if (typeof value !== "string") return violations.add(path, "must be a string");
    // A character takes two places at most.
    return value.length > 2 * sizes.charactersMax ? violations.add(path, tooLong(sizes)) : value;
  };
}

function typeReader(type: "boolean" | "number"): Reader {
  return (value, path, violations) => (typeof value === type ? value : violations.add(path, `must be a ${type}`));
}

/** The parser has already refused all values that a Struct cannot hold. */
const readStruct: Reader = (value, path, violations) =>
  isObject(value) ? value : violations.add(path, "must be an object");

/** A number that its type cannot hold. What its rules forbid of the others is found when they are checked. */
function wholeNumberReader(field: DescField, min: number, max: number): Reader {
  const outside = `must be between ${boundsOf(field, min, max).join(" and ")}`;
  return (value, path, violations) => {
    if (typeof value !== "number") return violations.add(path, "must be a number");
    if (!Number.isInteger(value)) return violations.add(path, "must be a whole number");
    if (value < min || value > max) return violations.add(path, outside);
    return value + 0; // Turns -0, which JSON has, into 0: integers have no -0.
  };
}

/** By its rules, where it has any: a caller who learned the bounds of its type would break those of the rules next. */
function boundsOf(field: DescField, min: number, max: number): [min: number, max: number] {
  const { type } = getOption(field, fieldRules);
  if (type.case !== "int32" && type.case !== "uint32") return [min, max];
  const { greaterThan, lessThan } = type.value;
  return [greaterThan.case === "gte" ? greaterThan.value : min, lessThan.case === "lte" ? lessThan.value : max];
}

function enumReader(desc: DescEnum): Reader {
  const numbers = new Map<JsonValue, number>(desc.values.map((value) => [value.name, value.number]));
  const message = `must be one of ${[...numbers.keys()].join(", ")}`;
  return (value, path, violations) => numbers.get(value) ?? violations.add(path, message);
}

function listReader(readElement: Reader, sizes: FieldSizes): Reader {
  return (value, path, violations) => {
    if (!Array.isArray(value)) return violations.add(path, "must be an array");
    if (value.length > sizes.itemsMax) return violations.add(path, tooManyItems(sizes));
    return value.map((element, index) => readElement(element, `${path}[${index}]`, violations));
  };
}

export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStruct(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Struct";
}

function unsupported(field: DescField): Error {
  return new Error(`unsupported field kind: ${field} cannot be decoded from JSON; teach decode-json.ts to read it`);
}
