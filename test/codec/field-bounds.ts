import { type DescField, getOption, ScalarType } from "@bufbuild/protobuf";
import { field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

export interface FieldBounds {
  readonly required: boolean;
  /** Of a number its value, of a text its length, of a list its items. */
  readonly min: number;
  readonly max: number;
}

/** What the rules of a field say, read in another way than the generator does. */
export function boundsOf(field: DescField): FieldBounds {
  const { required, type } = getOption(field, fieldRules);
  const isImplicit = field.presence === 2 && field.fieldKind === "scalar";
  const least = isImplicit ? 1 : 0;
  switch (type.case) {
    case "string":
      return { required, min: Math.max(least, Number(type.value.minLen)), max: Number(type.value.maxLen) || 300 };
    case "repeated":
      return {
        required: required || type.value.minItems > 0n,
        min: Math.max(1, Number(type.value.minItems)),
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
