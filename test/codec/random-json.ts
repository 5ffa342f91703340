import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { hashOf } from "../../src/codec/json-reader.ts";
import type { SeededRandom } from "../domain/seeded-random.ts";
import { boundsOf } from "./field-bounds.ts";

/** Asked at each place where a request can be unusual or wrong, whether it is so there. */
export type IsOdd = () => boolean;

/** A request as JSON, of whatever fields its message has. With nothing odd it is good, and written as clients write. */
export function randomJson(desc: DescMessage, random: SeededRandom, isOdd: IsOdd): string {
  const members = desc.fields.flatMap((field) => {
    if (boundsOf(field).required ? isOdd() : random.chance(0.4)) return [];
    const name = isOdd() ? random.pick(oddNames(field)) : JSON.stringify(field.jsonName);
    const member = `${name}${space(random)}:${space(random)}${randomValue(field, random, isOdd)}`;
    return isOdd() ? [member, member] : [member];
  });
  if (isOdd()) members.push(random.pick(oddMembers));
  const separator = isOdd() ? random.pick([",,", " ", ";", ""]) : `,${space(random)}`;
  const [open, close] = isOdd() ? random.pick(oddBrackets) : ["{", "}"];
  return `${open}${space(random)}${shuffled(members, random).join(separator)}${space(random)}${close}`;
}

function randomValue(field: DescField, random: SeededRandom, isOdd: IsOdd): string {
  if (field.fieldKind !== "list") return randomSingle(field, random, isOdd);
  const items = Array.from({ length: randomSize(field, random, isOdd) }, () => randomSingle(field, random, isOdd));
  const end = isOdd() ? random.pick([",]", "}", "", "]]"]) : "]";
  return `[${space(random)}${items.join(`,${space(random)}`)}${space(random)}${end}`;
}

function randomSingle(field: DescField, random: SeededRandom, isOdd: IsOdd): string {
  if (isOdd()) return random.pick(oddValues);
  if (field.message !== undefined) return randomJson(field.message, random, isOdd);
  switch (field.scalar) {
    case ScalarType.STRING:
      return JSON.stringify(randomText(randomSize(field, random, isOdd), random));
    case ScalarType.BOOL:
      return isOdd() ? random.pick(["True", "tru", "truefalse", "1", '"true"']) : random.pick(["true", "false"]);
    default: {
      const { min, max } = boundsOf(field);
      const odd = [`${min - 1}`, `${max + 1}`, `${min}.0`, `${min}e0`, `0${max}`, `-${min}`, `"${min}"`];
      return isOdd() ? random.pick(odd) : `${randomNumber(min, max, random)}`;
    }
  }
}

/** The length of a text or a list: between its bounds, often at one of them; just outside if it is odd. */
export function randomSize(field: DescField, random: SeededRandom, isOdd: IsOdd): number {
  const { min, max } = boundsOf(field);
  if (isOdd()) return random.pick([Math.max(0, min - 1), max + 1]);
  if (random.chance(0.1)) return random.pick([min, max]);
  return random.integer(min, Math.min(max, min + 5));
}

export function randomNumber(min: number, max: number, random: SeededRandom): number {
  const near = random.pick([min, 1, 127, 128, 16_383, 16_384, 2 ** 21, 2 ** 28 - 1, 2 ** 28, max]);
  return random.chance(0.5) ? Math.min(max, Math.max(min, near)) : random.integer(min, max);
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

export function randomText(length: number, random: SeededRandom): string {
  const some = Array.from({ length: Math.min(length, 8) }, () => alphabet[random.integer(0, alphabet.length - 1)]);
  return some
    .join("")
    .repeat(Math.ceil(length / 8))
    .slice(0, length);
}

function space(random: SeededRandom): string {
  return random.chance(0.9) ? "" : random.pick([" ", "\n", "\t", "\r\n  "]);
}

export function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(random.integer(0, rest.length - 1), 1)[0] as T);
}

function oddNames({ name, jsonName, number }: DescField): string[] {
  const escaped = `\\u${jsonName.charCodeAt(0).toString(16).padStart(4, "0")}${jsonName.slice(1)}`;
  const odd = [name, jsonName.toUpperCase(), `${number}`, `${jsonName} `, escaped, sameHash(jsonName)];
  return [...odd.map((text) => `"${text}"`), jsonName];
}

/** Another name that codecs cannot tell from this one by its hash. */
function sameHash(name: string): string {
  const [first, second] = [name.charCodeAt(0) + 1, name.charCodeAt(1) - 31];
  const other = String.fromCharCode(first, second) + name.slice(2);
  if (hashOf(other) !== hashOf(name)) throw new Error(`${other} has another hash than ${name}`);
  return other;
}

const oddMembers = ['"unknown":1', '"__proto__":{}', '"":1', '""', "", '"constructor":{}', '"cost"', '"cost":', "1"];
const oddBrackets = [
  ["[", "]"],
  ["{", ""],
  ["", "}"],
  ["{", "}}"],
  ["{", "} x"],
  ["{", ",}"],
  ["{{", "}"],
] as const;

const oddValues = [
  ...["null", "true", "false", "True", "tru", "truefalse", '"true"', "{}", "[]", "[{}]", "[null]", "{", "]", ""],
  ...["0", "-0", "00", "01", "1.0", "1.5", "1e2", "1E+2", "+1", "-1", ".5", "1.", "0x1", "1_000", "NaN", "Infinity"],
  ...["2147483647", "2147483648", "-2147483648", "4294967295", "4294967296", "999999999999999", "9999999999999999"],
  ...["9007199254740993", "1e400", '"1"', '""', '"\\u0061"', '"\\n"', '"é"', '"\u0001"', '"\\u0000"', '"\\ud800"'],
  ...['"a b"', '"a/b"', "'a'", '"a', '{"cost":1,"cost":1}', '{"cost":null}', '{"name":"a"}', '{"name":""}'],
  `"${"a".repeat(65)}"`,
  `"${"a".repeat(256)}"`,
];
