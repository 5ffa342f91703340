import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cutDirections } from "./cut-edge.ts";
import { missingForNetwork } from "./network.ts";
import { logins } from "./postgres.ts";
import { type Finding, Report, tableOf } from "./report.ts";
import { cutFromLedger, hung, killed, restarts, withWrongLedger } from "./scenarios/coordinators.ts";
import { cuts } from "./scenarios/cuts.ts";
import { far } from "./scenarios/far.ts";
import { healthy } from "./scenarios/healthy.ts";
import { uses } from "./scenarios/uses.ts";

/* `npm run soak -- regions`: seven network namespaces, every fault of the issue, what was measured beside what is asked. */

const scenarios: Record<string, (report: Report) => Promise<void>> = {
  ...Object.fromEntries(
    logins.map((login) => [`healthy, login by ${login}`, (report: Report) => healthy(report, login)]),
  ),
  "250 and 160 ms": far,
  ...Object.fromEntries(
    cutDirections.map((direction) => [
      `cut ${direction}`,
      (report: Report) => cuts(report, [2000, 17_000, 40_000], direction),
    ]),
  ),
  "20 orderly restarts of coordinators": restarts,
  "a coordinator is killed": killed,
  "a coordinator hangs": hung,
  "a coordinator is cut from its ledger": cutFromLedger,
  "a coordinator has a wrong ledger": withWrongLedger,
  "uses under kills and cuts": uses,
};

describe("regions", () => {
  const findings: Finding[] = [];

  beforeAll(() => {
    const missing = missingForNetwork();
    if (missing.length > 0) throw new Error(`THE LAB CANNOT RUN HERE. Missing: ${missing.join(", ")}`);
  });

  afterAll(() => console.log(`\n${tableOf(findings)}\n`));

  it.each(Object.entries(scenarios))("%s", async (name, scenario) => {
    const report = new Report(name, (line) => console.log(line));
    try {
      await scenario(report);
    } catch (error) {
      report.failed((error as Error).message.split("\n")[0] ?? "");
      throw error;
    } finally {
      findings.push(...report.findings);
    }
    expect(report.missed).toEqual([]);
  });
});
