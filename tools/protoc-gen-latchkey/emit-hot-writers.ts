// Prints the functions that write responses, as JSON and as a gRPC frame.
import { distinct, hex } from "./hot-names.ts";
import type { HotOutput, OutputField } from "./read-hot-output.ts";

export function emitWriters(outputs: readonly HotOutput[]): string[] {
  const inner = distinct(outputs.flatMap(innerOf));
  return [
    ...distinct([...inner, ...outputs]).map(emitPrinter),
    ...distinct(outputs).map(emitFramer),
    ...inner.map(emitWriter),
    ...inner.filter((output) => fixedSizeOf(output) === undefined).map(emitMeasure),
  ];
}

/** The messages in a message, each behind those that are in it. */
function innerOf({ fields }: HotOutput): HotOutput[] {
  return fields.flatMap(({ type }) => ("message" in type ? [...innerOf(type.message), type.message] : []));
}

function emitPrinter({ name, fields }: HotOutput): string {
  const first = fields.findIndex(({ optional }) => !optional);
  const lines = fields.map((field, index) => {
    // Until a field that is always there, there may be nothing that a comma would follow.
    const isCertain = first !== -1 && index > first;
    const key = `${isCertain ? "," : ""}${JSON.stringify(field.jsonName)}:`;
    const comma = isCertain || index === 0 ? "" : 'if (json !== "{") json += ",";';
    const print = `json += ${JSON.stringify(key)} + ${printValue(field)};`;
    if (!field.optional) return `  ${comma}${comma && "\n  "}${print}`;
    const body = comma ? `{\n    ${comma}\n    ${print}\n  }` : print;
    return `  if (message.${field.name} !== undefined) ${body}`;
  });
  return `function print${name}(message: MessageInitShape<typeof ${name}Schema>): string {
  let json = "{";
${lines.join("\n")}
  return json + "}";
}
`;
}

function printValue({ name, type, optional }: OutputField): string {
  const value = `message.${name}`;
  switch (type.kind) {
    case "string":
      return `printText(${optional ? value : `${value} ?? ""`})`;
    case "struct":
      return `printStruct(${value})`;
    case "bool":
      return optional ? value : `(${value} ?? false)`;
    case "int32":
    case "uint32":
      return optional ? value : `(${value} ?? 0)`;
    case "double":
      return `printDouble(${optional ? value : `${value} ?? 0`})`;
    case "message":
      return `print${type.message.name}(${value})`;
    case "list":
      return `printList(${value}, print${type.message.name})`;
  }
}

/** A message as a frame. Parts of variable size are measured first. */
function emitFramer(output: HotOutput): string {
  const structs = output.fields.filter(({ type }) => type.kind === "struct");
  const schema = `${output.name}Schema`;
  // Its own field number and length come with it, as the reference encoder writes them.
  const encoded = structs.map(
    ({ name }) =>
      `  const $${name} = message.${name} === undefined ? noBytes : isEmptyObject(message.${name}) ? ${name}IfEmptyIn${output.name} : toBinary(${schema}, create(${schema}, { ${name}: message.${name} }));\n`,
  );
  const empty = structs.map(
    ({ name, tag }) => `const ${name}IfEmptyIn${output.name} = Uint8Array.of(${hex(tag)}, 0);\n`,
  );
  return `${empty.join("")}function frame${output.name}(message: MessageInitShape<typeof ${schema}>): Buffer {
${encoded.join("")}  const wire = new FrameWriter(${measure(output)});
${output.fields.map(writeField).join("\n")}
  return wire.finish();
}
`;
}

/** A message inside another. */
function emitWriter({ name, fields }: HotOutput): string {
  return `function write${name}(wire: FrameWriter, message: MessageInitShape<typeof ${name}Schema>): void {
${fields.map(writeField).join("\n")}
}
`;
}

function emitMeasure(output: HotOutput): string {
  return `function size${output.name}(message: MessageInitShape<typeof ${output.name}Schema>): number {
  return ${measure(output)};
}
`;
}

function writeField({ name, tag, optional, type }: OutputField): string {
  const value = `message.${name}`;
  switch (type.kind) {
    case "struct":
      return `  wire.writeFields($${name});`;
    case "message":
      return `  if (${value} !== undefined) {\n${writeMessage(value, tag, type.message, "    ")}\n  }`;
    case "list": {
      const loop = `    for (const item of ${value}) {\n${writeMessage("item", tag, type.message, "      ")}\n    }`;
      return `  if (${value} !== undefined) {\n${loop}\n  }`;
    }
    default: {
      const write = {
        string: "writeText",
        bool: "writeBool",
        int32: "writeInt32",
        uint32: "writeUint32",
        double: "writeDouble",
      };
      // Zero without presence is not on the wire.
      const zero = type.kind === "string" ? '""' : type.kind === "bool" ? "false" : "0";
      const isThere = `${value} !== undefined${optional ? "" : ` && ${value} !== ${zero}`}`;
      return `  if (${isThere}) wire.${write[type.kind]}(${hex(tag)}, ${value});`;
    }
  }
}

function writeMessage(value: string, tag: number, { name }: HotOutput, indent: string): string {
  const lines = [
    `const start = wire.beginMessage(${hex(tag)});`,
    `write${name}(wire, ${value});`,
    "wire.endMessage(start);",
  ];
  return lines.map((line) => `${indent}${line}`).join("\n");
}

/** The most bytes that a field takes, tag included. Undefined if that depends on its value. */
function fixedSizeOfField({ type }: OutputField): number | undefined {
  switch (type.kind) {
    case "bool":
      return 2;
    case "int32":
      return 11;
    case "uint32":
      return 6;
    case "double":
      return 9;
    case "message": {
      const size = fixedSizeOf(type.message);
      return size === undefined ? undefined : headSizeOf(type.message) + size;
    }
    default:
      return undefined;
  }
}

function fixedSizeOf({ fields }: HotOutput): number | undefined {
  return fields.map(fixedSizeOfField).reduce((sum, size) => {
    return sum === undefined || size === undefined ? undefined : sum + size;
  }, 0);
}

/** Tag and length of a message inside another: a length below 128 is one byte, every other at most five. */
function headSizeOf(message: HotOutput): number {
  const size = fixedSizeOf(message);
  return size !== undefined && size < 128 ? 2 : 6;
}

/** The most bytes of a message, as an expression. */
function measure({ fields }: HotOutput): string {
  const fixed = fields.reduce((sum, field) => sum + (fixedSizeOfField(field) ?? 0), 0);
  const measured = fields.filter((field) => fixedSizeOfField(field) === undefined).map(measureField);
  return [`${fixed}`, ...measured].join(" + ");
}

function measureField({ name, type }: OutputField): string {
  const value = `message.${name}`;
  switch (type.kind) {
    case "string":
      return `textSize(${value} ?? "")`;
    case "struct":
      return `$${name}.length`;
    case "message":
      return `(${value} === undefined ? 0 : ${headSizeOf(type.message)} + size${type.message.name}(${value}))`;
    case "list": {
      const fixed = fixedSizeOf(type.message);
      const head = headSizeOf(type.message);
      if (fixed !== undefined) return `(${value} === undefined ? 0 : ${value}.length * ${head + fixed})`;
      return `listSize(${value}, ${head}, size${type.message.name})`;
    }
    default:
      throw new Error(`${name}: its size is fixed`);
  }
}
