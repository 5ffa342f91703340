// Prints .proto source for a file that an npm package ships only as a descriptor, so that buf can resolve imports of
// it. Options are left out, but for those that say where generated code is: at run time they are read from the package's
// own descriptor.
import type { DescFile } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";

export function printProto({ proto: file }: DescFile): string {
  const proto3 = file.syntax === "proto3";
  const lines = [
    `syntax = "${file.syntax || "proto2"}";`,
    `package ${file.package};`,
    ...file.dependency.map((name) => `import "${name}";`),
    ...printLanguageOptions(file),
    ...file.enumType.flatMap(printEnum),
    ...file.messageType.flatMap(printMessage),
    ...file.extension.flatMap(printExtension),
  ];
  return `${lines.join("\n")}\n`;

  function printMessage(message: DescriptorProto): string[] {
    const isMapEntry = (nested: DescriptorProto) => nested.options?.mapEntry === true;
    const plain = message.field.filter((field) => !inOneof(field));
    const oneofs = message.oneofDecl.flatMap((oneof, index) => {
      const members = message.field.filter((field) => inOneof(field) && field.oneofIndex === index);
      return members.length === 0
        ? []
        : [`oneof ${oneof.name} {`, ...members.map((field) => printField(field, message)), "}"];
    });
    return [
      `message ${message.name} {`,
      ...message.nestedType.filter((nested) => !isMapEntry(nested)).flatMap(printMessage),
      ...message.enumType.flatMap(printEnum),
      ...plain.map((field) => printField(field, message)),
      ...oneofs,
      ...message.extensionRange.map((range) => `extensions ${range.start} to ${rangeEnd(range.end)};`),
      ...message.reservedRange.map((range) => `reserved ${range.start} to ${rangeEnd(range.end)};`),
      ...message.reservedName.map((name) => `reserved "${name}";`),
      ...message.extension.flatMap(printExtension),
      "}",
    ];
  }

  function printField(field: FieldDescriptorProto, parent?: DescriptorProto): string {
    const entry = parent?.nestedType.find(
      (nested) => nested.options?.mapEntry && field.typeName.endsWith(`.${nested.name}`),
    );
    if (entry?.field[0] && entry.field[1]) {
      return `map<${typeOf(entry.field[0])}, ${typeOf(entry.field[1])}> ${field.name} = ${field.number};`;
    }
    return `${labelOf(field)}${typeOf(field)} ${field.name} = ${field.number}${defaultOf(field)};`;
  }

  function printExtension(field: FieldDescriptorProto): string[] {
    return [`extend ${field.extendee} {`, printField(field), "}"];
  }

  function labelOf(field: FieldDescriptorProto): string {
    if (field.label === Label.REPEATED) return "repeated ";
    if (field.label === Label.REQUIRED) return "required ";
    if (inOneof(field) || (proto3 && !field.proto3Optional)) return "";
    return "optional ";
  }
}

/** Which package the code is in that others generate from the file. Go refuses a file that does not say it. */
function printLanguageOptions({ options }: FileDescriptorProto): string[] {
  if (options === undefined) return [];
  return [
    ...(options.goPackage ? [`option go_package = "${options.goPackage}";`] : []),
    ...(options.javaPackage ? [`option java_package = "${options.javaPackage}";`] : []),
    ...(options.javaOuterClassname ? [`option java_outer_classname = "${options.javaOuterClassname}";`] : []),
    ...(options.javaMultipleFiles ? ["option java_multiple_files = true;"] : []),
  ];
}

function printEnum(enumType: EnumDescriptorProto): string[] {
  const alias = enumType.options?.allowAlias ? ["option allow_alias = true;"] : [];
  return [
    `enum ${enumType.name} {`,
    ...alias,
    ...enumType.value.map((value) => `${value.name} = ${value.number};`),
    "}",
  ];
}

// Unset scalars of a proto2 descriptor read as their default; only an own property says that the field is set.
function inOneof(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, "oneofIndex") && !field.proto3Optional;
}

function typeOf(field: FieldDescriptorProto): string {
  return field.typeName || (Type[field.type] ?? "").toLowerCase();
}

function defaultOf(field: FieldDescriptorProto): string {
  if (!field.defaultValue) return "";
  const value = field.type === Type.STRING ? JSON.stringify(field.defaultValue) : field.defaultValue;
  return ` [default = ${value}]`;
}

// Descriptor ranges exclude their end; the highest field number is spelled `max`.
function rangeEnd(exclusive: number): string {
  return exclusive > 536_870_911 ? "max" : String(exclusive - 1);
}
