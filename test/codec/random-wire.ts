import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { boundsOf } from "./field-bounds.ts";
import { type IsOdd, randomNumber, randomSize, randomText, shuffled } from "./random-json.ts";

/** The same in the wire format. Items of a list may have other fields between them. */
export function randomWire(desc: DescMessage, random: SeededRandom, isOdd: IsOdd): Uint8Array {
  const fields = desc.fields.flatMap((field) => {
    if (boundsOf(field).required ? isOdd() : random.chance(0.4)) return [];
    if (field.fieldKind === "list") {
      return Array.from({ length: randomSize(field, random, isOdd) }, () => randomField(field, random, isOdd));
    }
    const bytes = randomField(field, random, isOdd);
    return isOdd() ? [bytes, bytes] : [bytes];
  });
  if (isOdd()) fields.push(random.pick(oddFields));
  return Buffer.concat(shuffled(fields, random));
}

function randomField(field: DescField, random: SeededRandom, isOdd: IsOdd): Uint8Array {
  if (isOdd()) return oddField(field, random);
  if (field.message !== undefined) {
    const content = randomWire(field.message, random, isOdd);
    return delimited(field.number, content, isOdd() ? random.pick([-1, 1, 1000]) : 0);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return delimited(field.number, Buffer.from(randomText(randomSize(field, random, isOdd), random)));
    case ScalarType.BOOL:
      return varint(field.number, isOdd() ? random.pick([2, 127, 128]) : random.integer(0, 1));
    default: {
      const { min, max } = boundsOf(field);
      const odd = [Math.max(0, min - 1), Math.min(2 ** 32 - 1, max + 1)];
      return varint(field.number, isOdd() ? random.pick(odd) : randomNumber(min, max, random));
    }
  }
}

/** A field with the right number, and something unusual or wrong behind it. */
function oddField({ number }: DescField, random: SeededRandom): Uint8Array {
  return random.pick([
    () => varint(number, random.pick([0, 1, 2, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])),
    () =>
      new BinaryWriter()
        .tag(number, WireType.Varint)
        .int32(random.pick([-1, -(2 ** 31)]))
        .finish(),
    () =>
      new BinaryWriter()
        .tag(number, WireType.Varint)
        .uint64(random.pick([2n ** 32n, 2n ** 35n, 2n ** 63n]))
        .finish(),
    () => new BinaryWriter().tag(number, WireType.Bit64).double(1).finish(),
    () => new BinaryWriter().tag(number, WireType.Bit32).fixed32(1).finish(),
    () => delimited(number, Buffer.from(random.pick(["", "a", "a b", "é", "\0", "\ufeffa", "a".repeat(65)]))),
    () => delimited(number, Buffer.of(0xff)),
    () => delimited(number, varint(1, 1)),
    // Longer than they need be, which the wire format allows.
    () => Buffer.concat([Buffer.of((number << 3) | 0x80, 0x00), Buffer.of(1)]),
    () => Buffer.of(number << 3, 0x81, 0x00),
    () => Buffer.of(number << 3, 0x81, 0x80, 0x80, 0x80, 0x00),
    () => Buffer.of(number << 3, 0x81, 0x80, 0x80, 0x80, 0x10),
    () => Buffer.of(number << 3, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00),
    () => Buffer.of((number << 3) | 2, 0x81, 0x00, 0x61),
    () => Buffer.of((number << 3) | 2, 0x80, 0x00),
    () => Buffer.of(number << 3, 0xff),
    () => Buffer.of(number << 3),
    () => Buffer.of((number << 3) | 3, (number << 3) | 4),
  ])();
}

const oddFields = [
  varint(14, 1),
  varint(100, 1),
  Buffer.of(0),
  Buffer.of(0x80),
  Buffer.of(7),
  delimited(13, Buffer.alloc(3)),
];

function varint(number: number, value: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.Varint).uint32(value).finish();
}

/** `off` is by how much its length is wrong. */
function delimited(number: number, content: Uint8Array, off = 0): Uint8Array {
  const length = Math.max(0, content.length + off);
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).raw(content).finish();
}
