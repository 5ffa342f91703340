import { describe, expect, it } from "vitest";
import { readTree } from "../support/repository.ts";
import { findRiddles } from "./plain-words.ts";

describe("names and comments of the source", () => {
  it("are in words that an engineer would search for", () => {
    expect([...readTree("src", ".ts")].flatMap(([file, text]) => findRiddles(file, text))).toEqual([]);
  });

  it("would be found in other words, however they are written", () => {
    const sample = `/** Of a key: its id. */
      const toldTo = heldElsewhere + this.#arrive();
      /*
       * Of two lines.
       */
      interface ShownBalance { readonly isStillThere: boolean }
      const TOLD_MAX = 1; // Of a second, in ms.
      const text = \`a shown text \${value.broughtAtMs} and told\`;`;
    const found = findRiddles("sample.ts", sample).map((line) => /: (\S+)/.exec(line)?.[1]?.replace(";", ""));
    const names = ["toldTo", "heldElsewhere", "#arrive", "ShownBalance", "isStillThere", "TOLD_MAX", "broughtAtMs"];
    expect(found.sort()).toEqual([...names, "/**", "/*", "//"].sort());
  });

  it("may have such words in texts and sentences, and as parts of other words", () => {
    const sample = [
      "/** What callers are told. Of these, some are shown. */",
      "// A sentence that ends with the name",
      "// Of a key is none that begins with it.",
      'const message = "is shown and told"; // told',
      "const untold = theshown(`brought`, this.arrive(), reliedOn, stillHere);",
    ];
    expect(findRiddles("sample.ts", sample.join("\n"))).toEqual([]);
  });
});
