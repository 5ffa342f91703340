// Prints the functions that read requests. Each message has one for JSON and one for the wire, whether it is a whole
// request or inside one; each request has two more, which read a body to its end.
import { hashOf } from "../../src/codec/json-reader.ts";
import { distinct, hex } from "./hot-names.ts";
import type { HotInput, InputField } from "./read-hot-input.ts";

export function emitReaders(inputs: readonly HotInput[]): string[] {
  return [
    ...distinct(inputs).flatMap((input) => [emitJsonDecoder(input), emitWireDecoder(input)]),
    ...distinct(inputs.flatMap(withInner)).flatMap((input) => [
      ...emitPatterns(input),
      emitJsonReader(input),
      emitWireReader(input),
    ]),
  ];
}

function withInner(input: HotInput): HotInput[] {
  const inner = input.fields.flatMap(({ type }) => ("message" in type ? withInner(type.message) : []));
  return [input, ...inner];
}

function emitJsonDecoder({ name }: HotInput): string {
  return `function decode${name}Json(bytes: Buffer, start: number, end: number): ${name} | undefined {
  const json = new JsonReader(bytes, start, end);
  const message = read${name}Json(json);
  return json.isAtEnd() ? message : undefined;
}
`;
}

function emitWireDecoder({ name }: HotInput): string {
  return `function decode${name}(bytes: Buffer, start: number): ${name} | undefined {
  return read${name}(new WireReader(bytes, start));
}
`;
}

function emitPatterns(input: HotInput): string[] {
  return input.fields.flatMap((field) =>
    field.type.kind === "string" && field.type.pattern !== undefined
      ? [`const ${patternName(input, field)} = /${field.type.pattern}/;\n`]
      : [],
  );
}

function patternName(input: HotInput, { name }: InputField): string {
  return `${name}Of${input.name}`;
}

function emitJsonReader(input: HotInput): string {
  const hashes = new Set(input.fields.map(({ jsonName }) => hashOf(jsonName)));
  if (hashes.size < input.fields.length) throw new Error(`${input.name}: two of its names have the same hash`);
  const cases = input.fields.map((field) => {
    const isAnother = `!json.isName(${JSON.stringify(field.jsonName)})`;
    return emitCase(input, field, `${hashOf(field.jsonName)}`, jsonCall(field), isAnother);
  });
  return `function read${input.name}Json(json: JsonReader): ${input.name} | undefined {
${emitVariables(input)}  for (let name = json.readFirstName(); name !== noName; name = json.readNextName()) {
    switch (name) {
${cases.join("")}      default:
        return undefined;
    }
  }
${emitEnd(input)}
}
`;
}

function emitWireReader(input: HotInput): string {
  const cases = input.fields.map((field) => emitCase(input, field, hex(field.tag), wireCall(field)));
  return `function read${input.name}(wire: WireReader): ${input.name} | undefined {
${emitVariables(input)}  while (!wire.atEnd) {
    switch (wire.readTag()) {
${cases.join("")}      default:
        return undefined;
    }
  }
${emitEnd(input, tooShort(input))}
}
`;
}

function jsonCall({ type }: InputField): string {
  switch (type.kind) {
    case "message":
      return `read${type.message.name}Json(json)`;
    case "list":
      return `json.readList(read${type.message.name}Json, ${type.min}, ${type.max})`;
    default:
      return `json.${scalarCall(type)}`;
  }
}

function wireCall(field: InputField): string {
  const { type } = field;
  switch (type.kind) {
    case "message":
      return `wire.readMessage(read${type.message.name})`;
    case "list":
      return `wire.readItem(read${type.message.name}, ${variableOf(field)}, ${type.max})`;
    default:
      return `wire.${scalarCall(type)}`;
  }
}

function scalarCall(type: Exclude<InputField["type"], { kind: "message" | "list" }>): string {
  switch (type.kind) {
    case "string":
      return `readText(${type.min}, ${type.max})`;
    case "bool":
      return "readBool()";
    default:
      return `readWhole(${type.min}, ${type.max})`;
  }
}

/** Fields have names that are taken, such as `json` and `default`. */
function variableOf({ name }: InputField): string {
  return `$${name}`;
}

function emitVariables({ fields }: HotInput): string {
  return fields.map((field) => `  let ${variableOf(field)}: ${typeOf(field)} | undefined;\n`).join("");
}

function typeOf({ type }: InputField): string {
  switch (type.kind) {
    case "string":
      return "string";
    case "bool":
      return "boolean";
    case "message":
      return type.message.name;
    case "list":
      return `${type.message.name}[]`;
    default:
      return "number";
  }
}

/** Nothing comes twice, except items of a list on the wire. `isAnother`: whether the field has only the same label. */
function emitCase(input: HotInput, field: InputField, label: string, call: string, isAnother?: string): string {
  const variable = variableOf(field);
  const isItem = call.startsWith("wire.readItem");
  const before = [isAnother, isItem ? undefined : `${variable} !== undefined`].filter((fault) => fault !== undefined);
  const hasPattern = field.type.kind === "string" && field.type.pattern !== undefined;
  const mismatch = hasPattern ? ` || !${patternName(input, field)}.test(${variable})` : "";
  return `      case ${label}:
${before.length > 0 ? `        if (${before.join(" || ")}) return undefined;\n` : ""}        ${variable} = ${call};
        if (${variable} === undefined${mismatch}) return undefined;
        break;
`;
}

/** On the wire the length of a list is known when all fields are read. */
function tooShort({ fields }: HotInput): string[] {
  return fields.flatMap((field) => {
    const { type } = field;
    return type.kind === "list" && type.min > 1 ? [`${variableOf(field)}.length < ${type.min}`] : [];
  });
}

function emitEnd({ name, typeName, fields }: HotInput, faults: readonly string[] = []): string {
  const missing = fields.filter(({ required }) => required).map((field) => `${variableOf(field)} === undefined`);
  const refused = [...missing, ...faults].join(" || ");
  const values = fields.map((field) => {
    const mayBeAbsent = field.type.kind === "list" && !field.required;
    return `${field.name}: ${variableOf(field)}${mayBeAbsent ? " ?? noItems" : ""}`;
  });
  const members = [`$typeName: ${JSON.stringify(typeName)}`, ...values].join(", ");
  return `${refused && `  if (${refused}) return undefined;\n`}  return { ${members} } as ${name};`;
}
