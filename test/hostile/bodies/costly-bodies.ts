import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** As much as a request may have, less what the protocols put around it. */
const bytesMax = 65_000;

/** A body that has as much of one thing as there is room for. */
export interface CostlyBody {
  readonly name: string;
  readonly codec: "json" | "proto";
  readonly bytes: Uint8Array;
}

/** For every field of a request, however deep it is, and for fields that are in no contract. */
export function costlyBodiesOf(desc: DescMessage): CostlyBody[] {
  return [...jsonBodies(desc, (inner) => inner, ""), ...protoBodies(desc, (inner) => inner, "")];
}

const NESTED_MAX = 3;

function depthOf(path: string): number {
  return path === "" ? 0 : path.split(".").length;
}

function jsonBodies(desc: DescMessage, around: (inner: string) => string, path: string): CostlyBody[] {
  const json = (name: string, inner: string): CostlyBody => {
    return { name: `${path}${name}`, codec: "json", bytes: Buffer.from(around(`{${inner}}`)) };
  };
  const named = ({ jsonName }: DescField, inner: string) => `"${jsonName}":${inner}`;
  return [
    json(
      "unknown names",
      many((i) => `"x${i}":1`),
    ),
    json("unknown objects", `"x":[${many(() => "{}")}]`),
    json("one long name", `"${"x".repeat(bytesMax)}":1`),
    ...desc.fields.flatMap((field) => {
      const { jsonName, message } = field;
      const bodies: CostlyBody[] = [];
      if (field.fieldKind === "list") {
        for (const element of ["{}", '""', "0", "null", "[]", `{"x":1}`])
          bodies.push(json(`${jsonName} of ${element}`, named(field, `[${many(() => element)}]`)));
        if (field.listKind === "scalar") bodies.push(json(`${jsonName}, long`, named(field, `["${long}"]`)));
      } else if (message?.typeName === "google.protobuf.Struct") {
        bodies.push(
          json(`${jsonName} with many members`, named(field, `{${many((i) => `"m${i}":0`)}}`)),
          json(`${jsonName} with empty objects`, named(field, `{"m":[${many(() => "{}")}]}`)),
          json(`${jsonName}, deep`, named(field, `{"m":[${many(() => "[[[[[[[[]]]]]]]]")}]}`)),
        );
      } else if (field.scalar === ScalarType.STRING) {
        bodies.push(
          json(`${jsonName}, long`, named(field, `"${long}"`)),
          json(`${jsonName} of escapes`, named(field, `"${"\\u0061".repeat(bytesMax / 6)}"`)),
          json(`${jsonName} of parentheses`, named(field, `"${"(".repeat(bytesMax)}"`)),
          json(`${jsonName} of operators`, named(field, `"${"a or ".repeat(bytesMax / 5)}a"`)),
          json(`${jsonName} of slashes`, named(field, `"${"/".repeat(bytesMax)}"`)),
        );
      }
      if (message !== undefined && depthOf(path) < NESTED_MAX && !message.typeName.startsWith("google.")) {
        const inside = (inner: string) =>
          around(`{${named(field, field.fieldKind === "list" ? `[${inner}]` : inner)}}`);
        bodies.push(...jsonBodies(message, inside, `${path}${jsonName}.`));
      }
      return bodies;
    }),
  ];
}

const long = "x".repeat(bytesMax);

/** As many as there is room for, with commas between them. */
function many(item: (i: number) => string): string {
  const items: string[] = [];
  for (let left = bytesMax, i = 0; left > 0; i++) {
    const text = item(i);
    left -= text.length + 1;
    items.push(text);
  }
  return items.join(",");
}

function protoBodies(desc: DescMessage, around: (inner: Uint8Array) => Uint8Array, path: string): CostlyBody[] {
  const proto = (name: string, inner: Uint8Array): CostlyBody => {
    return { name: `${path}${name}`, codec: "proto", bytes: around(inner) };
  };
  return [
    proto("unknown fields", repeated(delimited(900, []))),
    ...desc.fields.flatMap((field) => {
      const { number, message, jsonName } = field;
      const bodies = [
        proto(`${jsonName}, empty, again and again`, repeated(delimited(number, []))),
        proto(`${jsonName} of zeros`, repeated(new BinaryWriter().tag(number, WireType.Varint).uint32(0).finish())),
        proto(`${jsonName}, long`, delimited(number, Buffer.alloc(bytesMax, "x"))),
        proto(`${jsonName}, packed`, delimited(number, Buffer.alloc(bytesMax))),
      ];
      if (message?.typeName === "google.protobuf.Struct") {
        const member = (i: number) => delimited(1, [...delimited(1, Buffer.from(`${i}`)), ...delimited(2, [8, 0])]);
        const members = Buffer.concat(Array.from({ length: bytesMax / 16 }, (_, i) => member(i)));
        const list = delimited(6, repeated(delimited(1, [8, 0])));
        bodies.push(
          proto(`${jsonName} with many members`, delimited(number, members)),
          proto(`${jsonName} with one long list`, delimited(number, delimited(1, delimited(2, list)))),
        );
      } else if (message !== undefined && depthOf(path) < NESTED_MAX) {
        bodies.push(...protoBodies(message, (inner) => around(delimited(number, inner)), `${path}${jsonName}.`));
      }
      return bodies;
    }),
  ];
}

function delimited(number: number, content: Uint8Array | readonly number[]): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Uint8Array.from(content)).finish();
}

function repeated(piece: Uint8Array): Uint8Array {
  return Buffer.concat(Array.from({ length: Math.floor(bytesMax / piece.length) }, () => piece));
}
