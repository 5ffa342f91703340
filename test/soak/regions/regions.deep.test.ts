import { describe, expect, it } from "vitest";
import { hasPostgres } from "../../support/test-database.ts";
import { missingForNetwork } from "./network.ts";
import { Report } from "./report.ts";
import { short } from "./scenarios/short.ts";

const missing = missingForNetwork();
if (missing.length > 0) console.log(`Left out: the test of regions far apart. Missing: ${missing.join(", ")}.`);

describe.runIf(hasPostgres && missing.length === 0)("edges 1, 40 and 80 ms from the ledger", { retry: 0 }, () => {
  it("fill every window exactly, never more, also while one of them is cut off, and that one comes back", async () => {
    const report = new Report("short form", (line) => console.log(line));
    await short(report);
    expect(report.missed).toEqual([]);
  });
});
