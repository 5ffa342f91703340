// Reads the request of a hot method: its fields, and the rules that a codec checks while it reads them.
import {
  type DescField,
  type DescMessage,
  type FileRegistry,
  getOption,
  hasOption,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { checkFinite, type HotMessage, type HotNames, namesOf, refuse } from "./hot-names.ts";

export interface HotInput extends HotMessage {
  readonly typeName: string;
  readonly fields: readonly InputField[];
}

export interface InputField extends HotNames {
  /** Whether a request without it is refused. */
  readonly required: boolean;
  readonly type: InputType;
}

export type InputType =
  /** Its length is bounded, in characters. */
  | { readonly kind: "string"; readonly min: number; readonly max: number; readonly pattern: string | undefined }
  | { readonly kind: "bool" }
  | { readonly kind: "int32" | "uint32"; readonly min: number; readonly max: number }
  | { readonly kind: "message"; readonly message: HotInput }
  /** Its number of items is bounded. An empty list is an absent one. */
  | { readonly kind: "list"; readonly message: HotInput; readonly min: number; readonly max: number };

type Rules = Readonly<Record<string, JsonValue>>;

const bodyBytesMax = 65_536;
const int32Max = 2 ** 31 - 1;
const uint32Max = 2 ** 32 - 1;

/** One set of ASCII characters. JavaScript and RE2, which the strict decoder uses, agree on what it matches. */
const knownPattern = /^\^\[[A-Za-z0-9_.:-]+\](?:[+*]|\{\d+(?:,\d*)?\})\$$/;

export function readInput(message: DescMessage, registry: FileRegistry, around: readonly DescMessage[] = []): HotInput {
  const rules = toJson(MessageRulesSchema, getOption(message, messageRules));
  if (Object.keys(Object(rules)).length > 0) throw refuse(message, "rules about a whole message are not for codecs");
  const fields = message.fields.map((field) => readInputField(field, registry, [...around, message]));
  return { name: message.name, path: message.file.name, typeName: message.typeName, fields };
}

function readInputField(field: DescField, registry: FileRegistry, around: readonly DescMessage[]): InputField {
  if (field.oneof) throw refuse(field, "a hot request has no oneof");
  const rules: Rules = Object(toJson(FieldRulesSchema, getOption(field, fieldRules)));
  const { required = false, ...others } = rules;
  if (field.fieldKind === "message" || field.fieldKind === "list") {
    return readCompound(field, { required: required === true, others, registry, around });
  }
  if (field.fieldKind !== "scalar") throw ofAnotherKind(field);
  // Whether rules hold for what is absent depends on the kind of presence; where something must be there, they do.
  if (field.presence === Presence.IMPLICIT && required !== true) {
    throw refuse(field, "a scalar of a hot request is required or optional");
  }
  return { ...readScalar(field, others), required: required === true };
}

/** Zero and an empty string without presence are absent, so that a required field is at least 1, or 1 long. */
function readScalar(field: DescField, rules: Rules): Omit<InputField, "required"> {
  const least = field.presence === Presence.IMPLICIT ? 1 : 0;
  switch (field.scalar) {
    case ScalarType.STRING: {
      const { minLen = 0, maxLen = bodyBytesMax, pattern } = rulesOfKind(field, rules, "string", stringRules);
      if (pattern !== undefined && !knownPattern.test(String(pattern))) {
        throw refuse(field, "codecs know patterns of one set of characters only, such as ^[a-z]+$");
      }
      const bounds = { min: Math.max(Number(minLen), least), max: Number(maxLen), pattern: pattern?.toString() };
      return { ...namesOf(field, "lengthDelimited"), type: { kind: "string", ...bounds } };
    }
    case ScalarType.BOOL:
      rulesOfKind(field, rules, "bool", []);
      // One without presence would have to be true.
      if (field.presence === Presence.IMPLICIT) throw refuse(field, "a bool of a hot request is optional");
      return { ...namesOf(field, "varint"), type: { kind: "bool" } };
    case ScalarType.INT32:
      return { ...namesOf(field, "varint"), type: readNumber(field, rules, "int32", [least, int32Max]) };
    case ScalarType.UINT32:
      return { ...namesOf(field, "varint"), type: readNumber(field, rules, "uint32", [least, uint32Max]) };
    default:
      throw ofAnotherKind(field);
  }
}

const stringRules = ["minLen", "maxLen", "pattern"];
const numberRules = ["gte", "gt", "lte", "lt"];

/** Codecs do not read negative numbers. */
function readNumber(
  field: DescField,
  rules: Rules,
  kind: "int32" | "uint32",
  [least, most]: readonly [number, number],
): InputType {
  const { gte = least, gt = least - 1, lte = most, lt = most + 1 } = rulesOfKind(field, rules, kind, numberRules);
  const min = Math.max(least, Number(gte), Number(gt) + 1);
  const max = Math.min(most, Number(lte), Number(lt) - 1);
  // Protovalidate then means what is outside of the two.
  if (min > max) throw refuse(field, "codecs read numbers from a lower to an upper bound, both not negative");
  return { kind, min, max };
}

interface CompoundRules {
  readonly required: boolean;
  readonly others: Rules;
  readonly registry: FileRegistry;
  readonly around: readonly DescMessage[];
}

function readCompound(field: DescField, { required, others, registry, around }: CompoundRules): InputField {
  // Well-known types have JSON forms of their own.
  if (field.message === undefined || field.message.file.proto.package === "google.protobuf") throw ofAnotherKind(field);
  checkFinite(field, field.message, around);
  const message = readInput(field.message, registry, around);
  const names = namesOf(field, "lengthDelimited");
  if (field.fieldKind !== "list") {
    rulesOfKind(field, others, "", []);
    return { ...names, required, type: { kind: "message", message } };
  }
  // In these lists an empty one is not simply an absent one.
  for (const name of ["absent_needs", "absent_means_all"]) {
    const option = registry.getExtension(`latchkey.v1.${name}`);
    if (option && hasOption(field, option)) throw refuse(field, `a hot request has no option (${name})`);
  }
  const { minItems = 0, maxItems } = rulesOfKind(field, others, "repeated", ["minItems", "maxItems"]);
  if (maxItems === undefined) throw refuse(field, "a list of a hot request has a rule max_items");
  const min = Math.max(required ? 1 : 0, Number(minItems));
  return { ...names, required: min > 0, type: { kind: "list", message, min, max: Number(maxItems) } };
}

/** The rules about values of this kind. Throws for every rule that is not among `known`. */
function rulesOfKind(field: DescField, rules: Rules, kind: string, known: readonly string[]): Rules {
  const { [kind]: ofKind = {}, ...others } = rules;
  const odd = [...Object.keys(others), ...Object.keys(Object(ofKind)).filter((rule) => !known.includes(rule))];
  if (odd.length > 0) throw refuse(field, `the rule ${odd.join(", ")} is not known to codecs`);
  return Object(ofKind);
}

function ofAnotherKind(field: DescField): Error {
  return refuse(field, "codecs do not read fields of this kind");
}
