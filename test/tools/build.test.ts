import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { artefactFolder } from "../support/artefact.ts";

const dist = join(artefactFolder(), "dist");
const scripts = readdirSync(dist).filter((name) => name.endsWith(".js"));

function read(name: string): string {
  return readFileSync(join(dist, name), "utf8");
}

/** The files that a script was made of: esbuild names each above its code. */
function sourcesOf(script: string): string[] {
  return [...read(script).matchAll(/^\/\/ ((?:src|gen|node_modules)\/\S+)$/gm)].map(([, source]) => source as string);
}

function packageOf(source: string): string | undefined {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(source)?.[1];
}

/** The scripts that are loaded together with this one, without those that it imports later. */
function loadedWith(script: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(script)) return loaded;
  loaded.add(script);
  for (const [, other] of read(script).matchAll(/(?:\bfrom|^import) *"\.\/([^"]+)"/gm)) {
    loadedWith(other as string, loaded);
  }
  return loaded;
}

function packagesIn(names: Iterable<string>): Set<string | undefined> {
  return new Set([...names].flatMap(sourcesOf).map(packageOf));
}

describe("the built program", () => {
  it("names every package that is in it, each with the text of its licence", () => {
    const sections = read("THIRD-PARTY-LICENSES").split(`\n${"=".repeat(80)}\n`);
    const texts = new Map(sections.map((text) => [/^\n?((?:@[^/]+\/)?[^ ]+) [\d.]+: ./.exec(text)?.[1], text]));
    const packages = [...packagesIn(scripts)].filter((name) => name !== undefined);
    expect(packages).toContain("pg");
    expect(packages).not.toContain("@grpc/grpc-js");
    for (const name of packages) {
      expect(texts.get(name), name).toMatch(
        /Permission (is hereby granted|to use)|Redistribution and use|TERMS AND CONDITIONS/,
      );
      expect(texts.get(name), name).toMatch(/copyright/i);
    }
    // Code of Google's that protobuf-es has taken over, under a licence of its own.
    expect(texts.get("@bufbuild/protobuf")).toMatch(/Copyright 2008 Google.*Redistribution and use/s);
  });

  it("loads only the engine that it uses", () => {
    const serve = scripts.find((name) => sourcesOf(name).includes("src/cli/serve.ts")) as string;
    for (const first of [serve, "worker-process.js"]) {
      const packages = packagesIn(loadedWith(first));
      expect(packages).toContain("@bufbuild/protobuf");
      for (const late of ["pg", "ioredis"]) expect(packages, first).not.toContain(late);
    }
    for (const thread of ["writer-worker.js", "list-worker.js"]) {
      expect([...loadedWith(thread)].flatMap(sourcesOf).filter((source) => packageOf(source))).toEqual([]);
    }
    // Compiled code is kept from there on.
    expect([...loadedWith("latchkey.js")].flatMap(sourcesOf)).toEqual(["src/cli/latchkey.ts"]);
  });

  it("has maps that lead back to the sources", () => {
    const { sources } = JSON.parse(read("writer-worker.js.map")) as { sources: string[] };
    expect(sources).toContainEqual(expect.stringMatching(/\/src\/store\/sqlite\/writer-worker\.ts$/));
    for (const script of scripts)
      expect(read(script)).toMatch(new RegExp(`\\n//# sourceMappingURL=${script}\\.map\\n$`));
  });

  it("has every file beside it that it looks for, and none of the sources", () => {
    const beside = scripts.flatMap((name) =>
      [...read(name).matchAll(/new URL\("(\.[^"]*)", import\.meta\.url\)/g)].map(([, file]) => file as string),
    );
    expect(new Set(beside)).toEqual(
      new Set([
        "./worker-process.js",
        "./writer-worker.js",
        "./list-worker.js",
        "./check-process.js",
        "./docs.html",
        "./openapi.json",
      ]),
    );
    for (const file of beside) expect(existsSync(join(dist, file)), file).toBe(true);
  });
});
