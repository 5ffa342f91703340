import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeGoals, writeIntoPage } from "../../bench/harness/report.ts";
import type { Figure, Goal, Section } from "../../bench/harness/section.ts";
import { readText } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";

describe("the benchmark's report", () => {
  it.each<[Partial<Goal>, Figure, string]>([
    [{ atLeast: 0.8 }, 0.8, "| 0.80 × | ≥ 0.8 × | met |"],
    [{ atLeast: 0.8 }, 0.79, "| 0.79 × | ≥ 0.8 × | short |"],
    [{ atMost: 1.3 }, 1.3, "| 1.30 × | ≤ 1.3 × | met |"],
    [{ atMost: 1.3 }, 1.31, "| 1.31 × | ≤ 1.3 × | short |"],
    [{}, 12.34, "| 12.3 × |  | stated |"],
    [{ atLeast: 1 }, "not countable here", "| not countable here | ≥ 1 × | open |"],
  ])("judges %o by %s as %s", (bound, figure, expected) => {
    const section = sectionWith({ what: "a figure", unit: "×", ...bound });
    expect(describeGoals([{ section, findings: { text: [], figures: { figure } } }])).toContain(expected);
  });

  it("says which section failed, beside the others", () => {
    const section = sectionWith({ what: "a figure", unit: "×" });
    const outcomes = [
      { section, findings: new Error("no such program") },
      { section, findings: { text: [], figures: { figure: 1 } } },
    ];
    expect(describeGoals(outcomes)).toMatch(/\| Section: all \| not measured \|.*failed \|\n.*1\.00 ×/);
  });

  it("changes nothing of the page but what stands between its lines", () => {
    const path = join(tempFolder(), "page.md");
    const page = readText("docs/benchmarks.md");
    writeFileSync(path, page);
    writeIntoPage(path, "first results");
    writeIntoPage(path, "later results");
    const written = readFileSync(path, "utf8");
    expect(written).toContain("later results");
    expect(written).not.toContain("first results");
    const [above = "", below = ""] = written.split("later results");
    expect(page.startsWith(above.trimEnd())).toBe(true);
    expect(page.endsWith(below.trimStart())).toBe(true);
  });

  it("refuses a page that has lost its lines", () => {
    const path = join(tempFolder(), "page.md");
    writeFileSync(path, "# Benchmarks\n");
    expect(() => writeIntoPage(path, "results")).toThrow(/lost the lines/);
  });
});

function sectionWith(figure: Goal): Section {
  return { title: "Section", how: "", goals: { figure }, measure: () => Promise.reject(new Error("not measured")) };
}
