import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

// Builds the bytes of requests that no encoder would write.

/** Field number in CreateKeyRequest. */
export const META = 9;

// Field numbers in Value.
export const NUMBER_VALUE = 2;
export const STRING_VALUE = 3;
export const LIST_VALUE = 6;
const STRUCT_VALUE = 5;

export function varint(number: number, value: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.Varint).uint32(value).finish();
}

export function double(number: number, value: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.Bit64).double(value).finish();
}

export function text(number: number, value: string): Uint8Array {
  return bytes(number, Buffer.from(value));
}

export function bytes(number: number, ...content: Uint8Array[]): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Buffer.concat(content)).finish();
}

/** A request whose meta holds one entry with this key and Value, and `extra` fields after them. */
export function metaEntry(key: string | Uint8Array, value: Uint8Array, ...extra: Uint8Array[]): Uint8Array {
  return bytes(META, bytes(1, bytes(1, typeof key === "string" ? Buffer.from(key) : key), bytes(2, value), ...extra));
}

/** An entry of a Struct. */
export function entryOf(key: string, value: JsonValue): Uint8Array {
  return bytes(1, text(1, key), bytes(2, valueBytes(value)));
}

/** A Value, without the tag and length of the field that holds it. */
export function valueBytes(value: JsonValue): Uint8Array {
  if (value === null) return varint(1, 0);
  if (typeof value === "number") return double(NUMBER_VALUE, value);
  if (typeof value === "string") return text(STRING_VALUE, value);
  if (typeof value === "boolean") return varint(4, Number(value));
  if (Array.isArray(value)) return bytes(LIST_VALUE, ...value.map((element) => bytes(1, valueBytes(element))));
  return bytes(STRUCT_VALUE, ...Object.entries(value).map(([key, member]) => entryOf(key, member)));
}

export function metaOf(meta: JsonObject): Uint8Array {
  return bytes(META, ...Object.entries(meta).map(([key, member]) => entryOf(key, member)));
}

export function nestedStructs(levels: number): Uint8Array {
  let struct: Uint8Array = Buffer.alloc(0);
  for (let i = 0; i < levels; i++) struct = bytes(1, bytes(2, bytes(STRUCT_VALUE, struct)));
  return bytes(META, struct);
}
