import { describe, expect, it } from "vitest";
import { readText, readTree } from "../support/repository.ts";
import { documentedRooms, documentedStoreInterfaces, writeRooms } from "./documented-rooms.ts";
import { findTrespasses, importsOf, roomOf, rooms, storeInterfaces } from "./rooms.ts";

describe("imports", () => {
  const generated = new Map([...readTree("gen", ".ts"), ...readTree("gen", ".js")]);
  const sources = new Map([...readTree("src", ".ts"), ...generated]);

  it("run one way between the rooms, without cycles", () => {
    expect(sources.size).toBeGreaterThan(40);
    expect(generated.size).toBeGreaterThan(10);
    expect(findTrespasses(sources)).toEqual([]);
  });

  it("leave no room without its rule", () => {
    const found = new Set([...sources.keys()].map(roomOf));
    expect([...found].sort()).toEqual(Object.keys(rooms).sort());
  });

  it("are absent from the types of the SDK, which brings no package along", () => {
    const types = "gen/latchkey/v1/client.ts";
    expect(importsOf(types, readText(types))).toEqual([]);
  });

  it("of commands that call a service reach nothing of the server, so that they start quickly", () => {
    const reached = new Set<string>();
    const visit = (file: string) => {
      if (reached.has(file)) return;
      reached.add(file);
      // Static ones only: what is imported later is not loaded at the start.
      const text = (sources.get(file) ?? "").replaceAll(/\bimport\(/g, "");
      for (const target of importsOf(file, text)) visit(target);
    };
    visit("src/cli/commands/run-client.ts");
    visit("src/cli/main.ts");
    const ours = [...reached].filter((file) => /^(src|gen)\//.test(file));
    expect([...new Set(ours.map(roomOf))].sort()).toEqual(["ambient", "cli", "config", "domain", "gen", "sdk"]);
    expect([...reached].filter((file) => !/^(src|gen|node:)/.test(file))).toEqual([]);
  });

  it.each([
    ["src/domain/a.ts", 'import { readFileSync } from "node:fs";'],
    ["src/domain/a.ts", 'import type { Clock } from "../ambient/clock.ts";'],
    ["src/usecases/a.ts", 'import { CachedKeyLookup } from "../store/cached-key-lookup.ts";'],
    ["src/rpc/a.ts", 'export * from "../store/key-lookup.ts";'],
    ["src/rpc/a.ts", 'const { Client } = await import("pg");'],
    ["src/sdk/a.ts", 'import "node:http";'],
    ["src/store/a.ts", 'import { x } from "../../test/support/test-clock.ts";'],
    ["src/ratelimit/strict/a.ts", 'import { x } from "../coordinator/b.ts";'],
    ["src/ratelimit/coordinator/a.ts", 'import type { X } from "../strict/b.ts";'],
    ["src/helpers/a.ts", 'import { x } from "../domain/key.ts";'],
    ["gen/latchkey/v1/a.ts", 'import { x } from "../../../src/rpc/call.ts";'],
    ["gen/latchkey/v1/a_pb.js", 'import { x } from "@connectrpc/connect";'],
    ["src/codec/a.ts", 'import { x } from "../../gen/latchkey/v1/keys_pb.js";'],
    ["src/store/a.ts", 'import { x } from "../../gen/latchkey/v1/keys_pb.js";'],
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

describe("the table of rooms in docs/architecture-rooms.md", () => {
  const page = readText("docs/architecture-rooms.md");

  it("says what the rules say", () => {
    expect(documentedRooms(page)).toEqual(writeRooms(rooms));
    expect(documentedStoreInterfaces(page)).toEqual(storeInterfaces);
  });

  it.each([
    ["another room", "| `domain` |", "| `domains` |"],
    ["one import more", "| domain, ambient, batching | pg |", "| domain, ambient, batching, rpc | pg |"],
    ["one package less", "| domain, ambient, batching | pg |", "| domain, ambient, batching | – |"],
    ["Node for a room that may not use it", "| @bufbuild/protobuf | no |", "| @bufbuild/protobuf | yes |"],
  ])("is found wrong where it says %s", (_, said, changed) => {
    expect(page).toContain(said);
    expect(documentedRooms(page.replace(said, changed))).not.toEqual(writeRooms(rooms));
  });
});
