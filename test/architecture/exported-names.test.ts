import { describe, expect, it } from "vitest";
import { readTree } from "../support/repository.ts";

const adapters = ["connect", "express", "fastify", "hono", "web"].map((name) => `src/sdk/guard/${name}.ts`);

/** Names that two files declare. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  // Each is the entry point of its own framework, so a service imports one of them.
  protect: adapters,
};

const declaration =
  /^export (?:default )?(?:abstract )?(?:async )?(?:class|interface|type|enum|const|let|function\*?) (\w+)/gm;

/** The names that several of the files declare and export, with those files. Re-exports are no declarations. */
function declaredTwice(files: Iterable<readonly [file: string, text: string]>): Record<string, string[]> {
  const filesOf = new Map<string, Set<string>>();
  for (const [file, text] of files) {
    for (const [, name = ""] of text.matchAll(declaration))
      filesOf.set(name, (filesOf.get(name) ?? new Set()).add(file));
  }
  const twice = [...filesOf].filter(([, of]) => of.size > 1);
  return Object.fromEntries(twice.map(([name, of]) => [name, [...of].sort()]));
}

describe("an exported name", () => {
  it("is declared in one file only, so that a search for it finds one meaning", () => {
    expect(declaredTwice(readTree("src", ".ts"))).toEqual(exceptions);
  });

  it("would be found in two files, also as another kind of declaration, and not where it is exported again", () => {
    const files: [string, string][] = [
      [
        "a.ts",
        "export interface Check {}\nexport const one = 1;\nexport function over(a: string): void;\nexport function over() {}",
      ],
      ["b.ts", "/** A check. */\nexport abstract class Check {}\nexport type { Own };\nconst one = 2;"],
      ["c.ts", 'export { one } from "./a.ts";\nexport async function* walk() {}'],
    ];
    expect(declaredTwice(files)).toEqual({ Check: ["a.ts", "b.ts"] });
  });
});
