import { expect, it } from "vitest";
import { HeapGrowth } from "../../../src/server/port/heap-growth.ts";

const usual = { connections: 50, heapBytes: 100 * 1024 * 1024 };
const many = { ...usual, connections: 51 };
const large = { ...usual, heapBytes: 300 * 1024 * 1024 };
const attack = { ...many, ...large, connections: 51 };
const [bounded, byDefault] = ["--heap-growing-percent=20", "--heap-growing-percent=0"];

function flagsOf(thread: HeapGrowth, { connections, heapBytes } = usual): string[] {
  const flags: string[] = [];
  thread.sweep(connections, heapBytes, (flag) => flags.push(flag));
  return flags;
}

it.each([
  ["few connections and a usual heap", usual],
  ["many connections and a usual heap", many],
  ["few connections and a large heap", large],
])("%s: it grows as V8 decides", (_, seen) => {
  expect(flagsOf(new HeapGrowth(), seen)).toEqual([]);
});

it("many connections and a large heap: it may grow by a fifth, until a minute after", () => {
  const thread = new HeapGrowth();
  expect([flagsOf(thread, attack), flagsOf(thread, attack)]).toEqual([[bounded], [bounded]]);
  const after = Array.from({ length: 61 }, () => flagsOf(thread));
  expect(after.filter(([flag]) => flag === bounded)).toHaveLength(58);
  expect(after.slice(58)).toEqual([[byDefault], [], []]);
});

it("V8 takes the flag while it runs", () => {
  const thread = new HeapGrowth();
  expect(() => thread.sweep(attack.connections, attack.heapBytes)).not.toThrow();
  for (let sweeps = 0; sweeps < 60; sweeps++) thread.sweep(0);
});
