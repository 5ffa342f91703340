// Reads one field: what its JSON is, and which of its protovalidate rules JSON Schema can state.
import { type DescField, type DescMessage, getOption, type JsonValue, ScalarType, toJson } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { FieldRulesSchema, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

export interface Field {
  /** Name in JSON, such as `apiId`. */
  readonly name: string;
  readonly comment: string;
  /** In a request: must be sent. In a response: always there. */
  readonly required: boolean;
  /** What an update can do to it. Undefined in messages that are not updates, and for fields that do not change. */
  readonly change: Change | undefined;
  /** What absent means. An update changes the field back to that by `null`. */
  readonly defaultBool?: boolean | undefined;
  /** For a list in an update: the field by which its items are recognised among those that are stored. */
  readonly itemsBy?: string | undefined;
  /** For a list that is no change: absent means all, so `[]` is refused, and `null` means absent. */
  readonly absentMeansAll?: boolean;
  /** For another name of a field: that field. */
  readonly aliasOf?: string | undefined;
  /** Whether it must be sent unless its other name is. */
  readonly isAliased?: boolean;
  /** Marked `debug_redact`: never a query parameter. */
  readonly secret: boolean;
  readonly type: FieldType;
  /** Keywords of JSON Schema, such as `minLength`. */
  readonly bounds: Rules;
}

export type FieldType =
  | { readonly kind: "string"; readonly oneOf: readonly string[] }
  | { readonly kind: "integer"; readonly format: "int32" | "int64" }
  | { readonly kind: "boolean" }
  /** An object of any shape. */
  | { readonly kind: "struct" }
  /** In a request, `readAs` are messages of answers that can be sent in its place. */
  | { readonly kind: "message"; readonly name: string; readonly readAs: readonly string[] }
  | { readonly kind: "list"; readonly items: Pick<Field, "type" | "bounds"> };

export type Change = "set" | "set or remove";

/** Whether callers write a message or read it: the one is strict, the other open to growth. */
export type Role = "request" | "response";

type Rules = Readonly<Record<string, JsonValue>>;

const KEYWORDS = new Map([
  ["minLen", "minLength"],
  ["maxLen", "maxLength"],
  ["pattern", "pattern"],
  ["in", "enum"],
  ["gt", "exclusiveMinimum"],
  ["gte", "minimum"],
  ["lt", "exclusiveMaximum"],
  ["lte", "maximum"],
  ["minItems", "minItems"],
  ["maxItems", "maxItems"],
  ["unique", "uniqueItems"],
]);

const INT32_MAX = 2_147_483_647;
const UINT32_MAX = 4_294_967_295;

/** What the options of the contract say, of fields and of messages. */
export interface Options {
  change(field: DescField): Change | undefined;
  /** What it is when it is absent, if the contract says so. */
  defaultBool(field: DescField): boolean | undefined;
  /** For a list: the field by which its items are recognised. */
  itemsBy(field: DescField): string | undefined;
  /** What a text has to be, if no rule says it. */
  format(field: DescField): string | undefined;
  /** For a list: whether absent means all. */
  absentMeansAll(field: DescField): boolean;
  /** The field that this one is another name of. */
  aliasOf(field: DescField): string | undefined;
  readAs(message: DescMessage): readonly string[];
}

/** `change` is given in updates. */
export function readField(
  field: DescField,
  role: Role,
  comment: string,
  options: Options,
  change: Change | undefined,
): Field {
  const allRules = asObject(toJson(FieldRulesSchema, getOption(field, fieldRules)));
  const { required: isRequired = false, ...rules } = allRules;
  const isList = field.fieldKind === "list";
  // A list that needs items has to be there.
  const required = isRequired === true || (isList && Number(asObject(rules.repeated ?? {}).minItems ?? 0) > 0);
  if (change !== undefined) {
    if (required) throw new Error(`${field}: a field that an update changes cannot be required`);
    if (field.presence === Presence.IMPLICIT && !isList) {
      throw new Error(`${field}: a field that an update changes must be optional`);
    }
  }
  const alwaysPrinted = role === "response" && field.presence === Presence.IMPLICIT;
  return {
    name: field.jsonName,
    comment,
    required: required || alwaysPrinted,
    change,
    defaultBool: options.defaultBool(field),
    itemsBy: options.itemsBy(field),
    absentMeansAll: options.absentMeansAll(field),
    aliasOf: options.aliasOf(field),
    secret: isSecret(field),
    ...(isList ? readList(field, role, allRules, options) : readSingle(field, role, rules, options)),
  };
}

/** A field that is not a list, or one item of a list. */
function readSingle(field: DescField, role: Role, allRules: Rules, options: Options): Pick<Field, "type" | "bounds"> {
  const { cel = [], ignore, ...byKind } = allRules;
  const [rules = {}, ...others] = Object.values(byKind).map(asObject);
  if (ignore !== undefined || others.length > 0) throw noCounterpart(field);
  const format = options.format(field);
  const bounds = inOrder({ ...(format && { format }), ...boundsOfKind(field, rules), ...readBounds(field, rules) });
  return { type: readType(field, role, bounds, cel, options), bounds };
}

function readList(field: DescField, role: Role, allRules: Rules, options: Options): Pick<Field, "type" | "bounds"> {
  const { required, repeated = {}, cel: _, ignore, ...others } = allRules;
  const { items = {}, ...rules } = asObject(repeated);
  // An empty list then passes without a look at the rules: the same, unless one asks for items.
  const canIgnore = ignore === "IGNORE_IF_ZERO_VALUE" && rules.minItems === undefined;
  if (Object.keys(others).length > 0 || (ignore !== undefined && !canIgnore)) throw noCounterpart(field);
  const type = { kind: "list", items: readSingle(field, role, asObject(items), options) } as const;
  // In a message an empty list is an absent one.
  const least = required ? { minItems: 1 } : {};
  return { type, bounds: inOrder({ ...least, ...readBounds(field, rules) }) };
}

function noCounterpart(field: DescField): Error {
  return new Error(`${field}: its rules have no counterpart in JSON Schema`);
}

/** The field that makes a message an update. It is not part of its JSON. */
export function isUpdateMask(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.FieldMask";
}

export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true;
}

export function isStruct(message: DescMessage): boolean {
  return message.typeName === "google.protobuf.Struct";
}

function readType(field: DescField, role: Role, bounds: Rules, cel: JsonValue, options: Options): FieldType {
  if (field.fieldKind === "map") throw new Error(`${field}: fields of this kind have no JSON type in this API`);
  if (field.message) {
    if (isStruct(field.message)) return { kind: "struct" };
    return { kind: "message", name: field.message.name, readAs: options.readAs(field.message) };
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return { kind: "string", oneOf: Array.isArray(bounds.enum) ? bounds.enum.map(String) : [] };
    case ScalarType.BOOL:
      return { kind: "boolean" };
    case ScalarType.INT32:
      return { kind: "integer", format: "int32" };
    case ScalarType.UINT32:
      return { kind: "integer", format: "int64" };
    case ScalarType.DOUBLE:
      // The only proto kind that prints whole numbers beyond 32 bits as JSON numbers; the contract has no fractions.
      if (role === "request" && !hasWholeRule(cel)) {
        throw new Error(`${field}: a double needs a CEL rule whose id ends in ".whole"`);
      }
      return { kind: "integer", format: "int64" };
    default:
      // 64-bit kinds and enums among them: their JSON is a string that the API does not want.
      throw new Error(`${field}: fields of this kind have no JSON type in this API`);
  }
}

function hasWholeRule(cel: JsonValue): boolean {
  return Array.isArray(cel) && cel.some((rule) => String(asObject(rule).id).endsWith(".whole"));
}

function readBounds(field: DescField, rules: Rules): Rules {
  const entries = Object.entries(rules).map(([rule, value]) => {
    const keyword = KEYWORDS.get(rule);
    if (!keyword) throw new Error(`${field}: the rule ${rule} has no counterpart in JSON Schema`);
    // ProtoJSON prints the 64-bit lengths as strings.
    return [keyword, /Length$|^(min|max)Items$/.test(keyword) ? Number(value) : value] as const;
  });
  return Object.fromEntries(entries);
}

// What the proto kind itself bounds, where no rule is tighter.
function boundsOfKind(field: DescField, rules: Rules): Rules {
  if (field.scalar === ScalarType.INT32) return "lt" in rules ? {} : { maximum: INT32_MAX };
  if (field.scalar === ScalarType.UINT32) return "lt" in rules ? { minimum: 0 } : { minimum: 0, maximum: UINT32_MAX };
  return {};
}

function inOrder(bounds: Rules): Rules {
  const order = [...KEYWORDS.values()];
  return Object.fromEntries(Object.entries(bounds).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)));
}

function asObject(value: JsonValue): Rules {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
