import { expect, it } from "vitest";
import { HeapGrowth } from "../../../src/server/port/heap-growth.ts";

const usual = 100 * 1024 * 1024;
const large = 300 * 1024 * 1024;
const [bounded, byDefault] = ["--heap-growing-percent=100", "--heap-growing-percent=0"];

function flagsOf(thread: HeapGrowth, heapBytes: number): string[] {
  const flags: string[] = [];
  thread.sweep(heapBytes, (flag) => flags.push(flag));
  return flags;
}

it("a large heap may only double, a usual one grows as V8 decides", () => {
  const thread = new HeapGrowth();
  expect(flagsOf(thread, usual)).toEqual([]);
  expect(flagsOf(thread, large)).toEqual([bounded]);
  expect(flagsOf(thread, usual)).toEqual([byDefault]);
  expect(flagsOf(thread, usual)).toEqual([]);
});

it("a thread whose heap is large bounds it again after another thread has taken the flag back", () => {
  const [small, attacked] = [new HeapGrowth(), new HeapGrowth()];
  expect(flagsOf(attacked, large)).toEqual([bounded]);
  expect(flagsOf(small, usual)).toEqual([]);
  expect(flagsOf(attacked, large)).toEqual([bounded]);
});

it("V8 takes the flag while it runs", () => {
  const thread = new HeapGrowth();
  expect(() => thread.sweep(large)).not.toThrow();
  expect(() => thread.sweep(usual)).not.toThrow();
});
