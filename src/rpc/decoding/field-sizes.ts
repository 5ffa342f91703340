import { type DescField, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { memoized } from "../memoized.ts";
import { ELEMENTS_MAX } from "./parse-json.ts";

/**
 * How much a field may hold by its rules. The decoders ask before they read it: 64 KiB hold more than 30 000 empty elements,
 * of which each costs as much as a whole request, and patterns are slow on long texts. Infinite where no rule says it, as
 * for the names of free JSON.
 */
export interface FieldSizes {
  /** Elements of a list. */
  readonly itemsMax: number;
  /** Characters of a text, or of each in a list. */
  readonly charactersMax: number;
}

/** Lists of messages that are not ours: no update has as many fields, and metadata no room for as many elements. */
const itemsOfOthers: Readonly<Record<string, number>> = {
  "google.protobuf.FieldMask": 100,
  "google.protobuf.ListValue": ELEMENTS_MAX,
};

export const sizesOf = memoized((field: DescField): FieldSizes => {
  const { type } = getOption(field, fieldRules);
  const isList = type.case === "repeated";
  const text = isList ? type.value.items?.type : type;
  return {
    itemsMax: (isList ? Number(type.value.maxItems) : itemsOfOthers[field.parent.typeName]) || Number.POSITIVE_INFINITY,
    charactersMax: (text?.case === "string" ? Number(text.value.maxLen) : 0) || Number.POSITIVE_INFINITY,
  };
});

/* As protovalidate puts it. */

export function tooManyItems({ itemsMax }: FieldSizes): string {
  return `must contain no more than ${itemsMax} item(s)`;
}

export function tooLong({ charactersMax }: FieldSizes): string {
  return `must be at most ${charactersMax} characters`;
}
