// Reads the response of a hot method.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { checkFinite, type HotMessage, type HotNames, namesOf, refuse } from "./hot-names.ts";
import { isStruct } from "./read-field.ts";

export interface HotOutput extends HotMessage {
  /** In the order in which they are printed. */
  readonly fields: readonly OutputField[];
}

export interface OutputField extends HotNames {
  /** Whether it can be absent. Otherwise JSON always has it, and the wire has it unless it is zero or an empty list. */
  readonly optional: boolean;
  readonly type: OutputType;
}

export type OutputType =
  | { readonly kind: "string" | "bool" | "int32" | "uint32" | "double" | "struct" }
  | { readonly kind: "message" | "list"; readonly message: HotOutput };

export function readOutput(message: DescMessage, around: readonly DescMessage[] = []): HotOutput {
  const inOrder = message.fields.toSorted((a, b) => a.number - b.number);
  const fields = inOrder.map((field) => readOutputField(field, [...around, message]));
  return { name: message.name, path: message.file.name, fields };
}

function readOutputField(field: DescField, around: readonly DescMessage[]): OutputField {
  if (field.oneof) throw refuse(field, "a hot response has no oneof");
  const optional = field.presence === Presence.EXPLICIT;
  if (field.message !== undefined && field.fieldKind !== "map") {
    return { ...namesOf(field, "lengthDelimited"), optional, type: readCompound(field, field.message, around) };
  }
  switch (field.fieldKind === "scalar" ? field.scalar : undefined) {
    case ScalarType.BOOL:
      return { ...namesOf(field, "varint"), optional, type: { kind: "bool" } };
    case ScalarType.INT32:
      return { ...namesOf(field, "varint"), optional, type: { kind: "int32" } };
    case ScalarType.UINT32:
      return { ...namesOf(field, "varint"), optional, type: { kind: "uint32" } };
    case ScalarType.DOUBLE:
      return { ...namesOf(field, "bit64"), optional, type: { kind: "double" } };
    case ScalarType.STRING:
      return { ...namesOf(field, "lengthDelimited"), optional, type: { kind: "string" } };
    default:
      throw ofAnotherKind(field);
  }
}

function readCompound(field: DescField, message: DescMessage, around: readonly DescMessage[]): OutputType {
  if (message.file.proto.package === "google.protobuf") {
    // A Struct is measured by encoding it, which happens once, for the whole response.
    if (isStruct(message) && field.fieldKind === "message" && around.length === 1) return { kind: "struct" };
    throw ofAnotherKind(field);
  }
  checkFinite(field, message, around);
  return { kind: field.fieldKind === "list" ? "list" : "message", message: readOutput(message, around) };
}

function ofAnotherKind(field: DescField): Error {
  return refuse(field, "codecs do not print fields of this kind");
}
