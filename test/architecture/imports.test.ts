import { describe, expect, it } from "vitest";
import { readTree } from "../support/repository.ts";
import { findTrespasses, rooms } from "./rooms.ts";

describe("imports", () => {
  const sources = readTree("src", ".ts");

  it("run one way between the rooms, without cycles", () => {
    expect(sources.size).toBeGreaterThan(40);
    expect(findTrespasses(sources)).toEqual([]);
  });

  it("leave no room without its rule", () => {
    const found = new Set([...sources.keys()].map((file) => file.split("/")[1]));
    expect([...found].sort()).toEqual(Object.keys(rooms).sort());
  });

  it.each([
    ["src/domain/a.ts", 'import { readFileSync } from "node:fs";'],
    ["src/domain/a.ts", 'import type { Clock } from "../ambient/clock.ts";'],
    ["src/usecases/a.ts", 'import { CachedKeyStore } from "../store/cached-key-store.ts";'],
    ["src/rpc/a.ts", 'export * from "../store/key-store.ts";'],
    ["src/rpc/a.ts", 'const { Kysely } = await import("kysely");'],
    ["src/sdk/a.ts", 'import "node:http";'],
    ["src/store/a.ts", 'import { x } from "../../test/support/test-clock.ts";'],
    ["src/helpers/a.ts", 'import { x } from "../domain/key.ts";'],
  ])("are refused where %s says %s", (file, text) => {
    expect(findTrespasses(new Map([[file, text]]))).toHaveLength(1);
  });

  it("are refused where they form a cycle", () => {
    const cycle = new Map([
      ["src/domain/a.ts", 'import { b } from "./b.ts";'],
      ["src/domain/b.ts", 'import { a } from "./a.ts";'],
    ]);
    expect(findTrespasses(cycle)).toEqual(["a cycle: src/domain/a.ts → src/domain/b.ts → src/domain/a.ts"]);
  });
});
