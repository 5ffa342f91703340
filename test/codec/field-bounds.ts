import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

export interface FieldBounds {
  readonly required: boolean;
  /** Of a number its value, of a text its length, of a list its items. */
  readonly min: number;
  readonly max: number;
}

const known = new WeakMap<DescField, FieldBounds>();

/** What the rules of a field say, read in another way than the generator does. */
export function boundsOf(field: DescField): FieldBounds {
  let bounds = known.get(field);
  if (bounds === undefined) {
    bounds = readBounds(field);
    known.set(field, bounds);
  }
  return bounds;
}

function readBounds(field: DescField): FieldBounds {
  const { required, type } = getOption(field, fieldRules);
  const least = field.presence === Presence.IMPLICIT ? 1 : 0;
  switch (type.case) {
    case "string":
      return { required, min: Math.max(least, Number(type.value.minLen)), max: Number(type.value.maxLen) || 300 };
    case "repeated":
      return {
        required: required || type.value.minItems > 0n,
        min: Math.max(required ? 1 : 0, Number(type.value.minItems)),
        max: Number(type.value.maxItems),
      };
    case "int32":
    case "uint32": {
      const { greaterThan, lessThan } = type.value;
      const lowest = greaterThan.case === "gt" ? greaterThan.value + 1 : (greaterThan.value ?? least);
      const highest = lessThan.case === "lt" ? lessThan.value - 1 : (lessThan.value ?? mostOf(field));
      return { required, min: Math.max(least, lowest), max: highest };
    }
    default:
      return { required, min: least, max: field.scalar === ScalarType.STRING ? 300 : mostOf(field) };
  }
}

function mostOf(field: DescField): number {
  return field.scalar === ScalarType.UINT32 ? 2 ** 32 - 1 : 2 ** 31 - 1;
}
