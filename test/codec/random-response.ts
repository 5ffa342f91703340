import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { randomText } from "./random-json.ts";

/** A response as a handler returns it, of whatever fields its message has. */
export function randomResponse(desc: DescMessage, random: SeededRandom): Record<string, unknown> {
  const given = desc.fields.filter(() => random.chance(0.7));
  return Object.fromEntries(given.map((field) => [field.localName, randomValue(field, random)]));
}

function randomValue(field: DescField, random: SeededRandom): unknown {
  if (field.fieldKind !== "list") return randomSingle(field, random);
  return Array.from({ length: random.pick([0, 1, 2, 9]) }, () => randomSingle(field, random));
}

function randomSingle(field: DescField, random: SeededRandom): unknown {
  if (field.message?.typeName === "google.protobuf.Struct") return random.pick(structs);
  if (field.message !== undefined) return randomResponse(field.message, random);
  switch (field.scalar) {
    case ScalarType.STRING:
      return random.chance(0.5) ? random.pick(texts) : randomText(random.integer(0, 200), random);
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.DOUBLE:
      return random.pick([0, 1, 1.5, -1, 4_102_444_800_000, 1e21, 5e-324, Number.NaN, Number.POSITIVE_INFINITY]);
    case ScalarType.UINT32:
      return random.pick([0, 1, 127, 128, 2 ** 31, 2 ** 32 - 1]);
    default:
      return random.pick([0, 1, 127, 128, 16_384, 2 ** 31 - 1, -1, -(2 ** 31)]);
  }
}

const structs = [{}, { a: 1 }, { list: [1, null, "two", { three: true }], naïve: "é" }, { long: "x".repeat(300) }];
const texts = [
  "",
  "a",
  'say "a"',
  "back\\slash",
  "né",
  "😀\u2028",
  "\t",
  "\u007f",
  "n".repeat(127),
  "n".repeat(128),
  "é".repeat(64),
];
