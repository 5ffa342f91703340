// Reads what a generated codec must know about a hot method. Refuses what the emitter cannot print faithfully.

import type { FileRegistry } from "@bufbuild/protobuf";
import { type DescField, type DescMessage, type DescMethod, getOption, ScalarType, toJson } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  MessageRulesSchema,
  message as messageRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { isStruct } from "./read-field.ts";

export interface HotMethod {
  readonly input: HotInput;
  readonly output: HotOutput;
}

export interface HotInput {
  readonly name: string;
  readonly typeName: string;
  readonly fields: readonly InputField[];
}

/** A string. */
export interface InputField {
  readonly name: string;
  readonly jsonName: string;
  /** The byte in front of the field: its number and its wire type. */
  readonly tag: number;
  readonly required: boolean;
  /** In characters. */
  readonly min: number;
  readonly max: number;
}

export interface HotOutput {
  readonly name: string;
  /** In the order in which they are printed. */
  readonly fields: readonly OutputField[];
}

export interface OutputField {
  readonly name: string;
  readonly jsonName: string;
  readonly tag: number;
  /** Whether it can be absent. Otherwise JSON always has it, and the wire has it unless it is zero. */
  readonly optional: boolean;
  readonly kind: "string" | "bool" | "int32" | "double" | "struct" | HotOutput;
}

const wireTypes = { varint: 0, bit64: 1, lengthDelimited: 2 } as const;
const bodyBytesMax = 65_536;

/** Undefined for a method that is not hot. */
export function readHot(method: DescMethod, registry: FileRegistry): HotMethod | undefined {
  const hot = registry.getExtension("latchkey.v1.hot");
  if (!hot || getOption(method, hot) !== true) return undefined;
  return { input: readInput(method.input), output: readOutput(method.output, "whole") };
}

function readInput(message: DescMessage): HotInput {
  const rules = toJson(MessageRulesSchema, getOption(message, messageRules));
  if (Object.keys(Object(rules)).length > 0) throw refuse(message, "rules about a whole message are not for codecs");
  return { name: message.name, typeName: message.typeName, fields: message.fields.map(readInputField) };
}

function readInputField(field: DescField): InputField {
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING || field.oneof) {
    throw refuse(field, "a hot request holds strings only");
  }
  const rules = Object(toJson(FieldRulesSchema, getOption(field, fieldRules)));
  const { required = false, string: { minLen = "0", maxLen = bodyBytesMax, ...otherBounds } = {}, ...others } = rules;
  const odd = [...Object.keys(otherBounds), ...Object.keys(others)];
  if (odd.length > 0) throw refuse(field, `the rule ${odd.join(", ")} is not known to codecs`);
  // Whether rules hold for what is absent depends on the kind of presence; where something must be there, they do.
  if (field.presence === Presence.IMPLICIT && required !== true) {
    throw refuse(field, "a string of a hot request is required or optional");
  }
  // An empty string without presence is none.
  const min = Math.max(Number(minLen), field.presence === Presence.IMPLICIT ? 1 : 0);
  return { ...namesOf(field, wireTypes.lengthDelimited), required: required === true, min, max: Number(maxLen) };
}

/** A message inside must have a length of one byte, so it holds numbers only. */
function readOutput(message: DescMessage, place: "whole" | "inside"): HotOutput {
  const fields = message.fields.toSorted((a, b) => a.number - b.number).map((field) => readOutputField(field, place));
  return { name: message.name, fields };
}

function readOutputField(field: DescField, place: "whole" | "inside"): OutputField {
  if (field.oneof) throw refuse(field, "a hot response has no oneof");
  const optional = field.presence === Presence.EXPLICIT;
  if (place === "whole" && field.fieldKind === "message") {
    const kind = isStruct(field.message) ? "struct" : readOutput(field.message, "inside");
    return { ...namesOf(field, wireTypes.lengthDelimited), optional, kind };
  }
  switch (field.fieldKind === "scalar" ? field.scalar : undefined) {
    case ScalarType.BOOL:
      return { ...namesOf(field, wireTypes.varint), optional, kind: "bool" };
    case ScalarType.INT32:
      return { ...namesOf(field, wireTypes.varint), optional, kind: "int32" };
    case ScalarType.DOUBLE:
      return { ...namesOf(field, wireTypes.bit64), optional, kind: "double" };
    case ScalarType.STRING:
      if (place === "whole") return { ...namesOf(field, wireTypes.lengthDelimited), optional, kind: "string" };
  }
  throw refuse(field, "codecs do not print fields of this kind");
}

function namesOf(field: DescField, wireType: number): Pick<InputField, "name" | "jsonName" | "tag"> {
  if (field.number > 15) throw refuse(field, "the number of a hot field is at most 15, so that its tag is one byte");
  return { name: field.localName, jsonName: field.jsonName, tag: (field.number << 3) | wireType };
}

function refuse(desc: DescField | DescMessage, reason: string): Error {
  return new Error(`${desc}: ${reason}`);
}
