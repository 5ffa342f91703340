import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { reportDatabase } from "../../src/doctor/check-postgres.ts";
import { type FindingId, findingKinds, worstOf } from "../../src/doctor/findings.ts";
import { MetricsText } from "../../src/doctor/metrics-text.ts";
import { type Report, runChecks } from "../../src/doctor/run-checks.ts";
import { serviceSigns } from "../../src/doctor/service-signs.ts";
import { printablePostgresUrl } from "../../src/domain/postgres-url.ts";
import { hourAt } from "../../src/domain/usage.ts";
import type { DatabaseFacts } from "../../src/store/postgres/inspect-database.ts";
import { readText, readTree } from "../support/repository.ts";
import { healthyEnvironment, runDoctor } from "./run-doctor.ts";

/** The tables of the page: id → severity and why, with what is wrong and what to type beside them. */
function documentedFindings(page: string) {
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (\w+) \| (.+?) \| (.+?) \| (.+) \|$/gm)];
  return rows.map(([, id, severity, what, why, fix]) => ({ id, severity, what, why, fix }));
}

describe("docs/doctor.md", () => {
  const page = readText("docs/doctor.md");
  const inCode = Object.entries(findingKinds).map(([id, { severity, why }]) => [id, severity, why]);
  const inPage = (text: string) => documentedFindings(text).map(({ id, severity, why }) => [id, severity, why]);

  it("has every finding with its severity and why it matters, and says what to type", () => {
    expect(inPage(page).sort()).toEqual(inCode.sort());
    for (const { id, what, fix } of documentedFindings(page))
      expect([id, `${what}${fix}`.length > 40]).toEqual([id, true]);
  });

  it.each([
    ["another severity", "| `disk-low` | warning |", "| `disk-low` | note |"],
    ["another reason", "Clients refuse it afterwards.", "Nobody cares."],
    ["a finding that is not there", "| `disk-low` |", "| `disk-slow` |"],
  ])("would be found out with %s", (_, said, changed) => {
    expect(page).toContain(said);
    expect(inPage(page.replace(said, changed)).sort()).not.toEqual(inCode.sort());
  });

  it("shows the JSON as it is", async () => {
    const [, block = ""] = /```json .+\n([\s\S]+?)```/.exec(page) ?? [];
    const shown = JSON.parse(block);
    const answer = await runDoctor({ ...healthyEnvironment(), LATCHKEY_CALL_MAX: "1" });
    expect(answer.findings).toEqual(shown.findings);
    expect(Object.keys(answer.checked[0] ?? {})).toEqual(Object.keys(shown.checked[0]));
  });

  it("has no finding that nothing finds", () => {
    const sources = [...readTree("src/doctor", ".ts")].filter(([file]) => !file.endsWith("/findings.ts"));
    const texts = sources.map(([, text]) => text).join("\n");
    expect(Object.keys(findingKinds).filter((id) => !texts.includes(`"${id}"`))).toEqual([]);
  });
});

describe("checks", () => {
  it("run at once, and one that hangs or fails is itself a finding, beside what it had found", async () => {
    let began = 0;
    const hangs = async ({ found, signal }: Report) => {
      began++;
      found("disk-low", "before it hung", "make room");
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("ended"))));
    };
    const fails = () => {
      began++;
      throw Object.assign(new Error("secret words"), { code: "EBROKEN" });
    };
    const fine = ({ checked }: Report) => checked("well");
    const running = runChecks({ "the slow one": hangs, "the broken one": fails, fine, none: false }, 50);
    expect(began).toBe(2);
    const { findings, checked } = await running;
    expect(findings.map(({ id, area }) => [id, area])).toEqual([
      ["disk-low", "the slow one"],
      ["check-timed-out", "the slow one"],
      ["check-failed", "the broken one"],
    ]);
    expect(findings.at(-1)?.problem).toBe("the check of the broken one failed: EBROKEN");
    expect(checked).toEqual([{ area: "fine", text: "well" }]);
    expect([worstOf(findings), worstOf(findings.slice(0, 1)), worstOf([])]).toEqual(["error", "warning", undefined]);
  });

  it("show an address of a database without its password and without options", () => {
    for (const [url, shown] of [
      ["postgres://user:pass@a:1,b:2/name?sslmode=require&password=pass", "postgres://user@a:1,b:2/name"],
      ["postgresql://:pass@a/name", "postgresql://a/name"],
      ["postgres://user@a", "postgres://user@a"],
      // The password may be `pa@ss/w?x=y`.
      ["postgres://user:pa@ss/w?x=y@a/name", "postgres://…"],
    ] as const)
      expect(printablePostgresUrl(url)).toBe(shown);
  });
});

/** The ids that a report comes to. */
function idsOf(write: (report: Report) => void): FindingId[] {
  const ids: FindingId[] = [];
  write({ checked: () => {}, found: (id) => void ids.push(id), signal: new AbortController().signal });
  return ids;
}

describe("facts of a database", () => {
  const healthy: DatabaseFacts = {
    ...{ version: "15.4", versionNumber: 150_004, isStandby: false, isReadOnly: false, unsafeSettings: [] },
    isStandbyAway: false,
    ...{ isolation: "read committed", roundTripMs: 100, clockAheadMs: 1900, pooler: undefined, connectionsFree: 15 },
    ...{ schema: "public", role: "latchkey", canCreateTables: true, forbiddenTables: [], applied: undefined },
    hasUnfinishedCopy: false,
    ...{ isEmpty: true, replicas: 2, hasLocalLimits: true, meteredHour: hourAt(systemClock.nowMs()) + 1 },
  };
  const settings = { databaseConnectionsMax: 10, usageLanes: 2, storeMustExist: false, countsAlone: false };
  const findingsOf = (facts: Partial<DatabaseFacts>) =>
    idsOf((report) => reportDatabase("url", { ...healthy, ...facts }, settings, report));

  // What no server of a test is.
  it.each<[Partial<DatabaseFacts>, FindingId[]]>([
    [{}, []],
    [{ versionNumber: 120_017 }, ["postgres-version"]],
    [{ clockAheadMs: -2100 }, ["postgres-clock"]],
    // A slow line is no wrong clock.
    [{ clockAheadMs: -2100, roundTripMs: 400 }, []],
    [{ connectionsFree: 14 }, ["postgres-connections-few"]],
    [{ connectionsFree: 14, pooler: "transaction" }, ["postgres-pooler"]],
    [{ schema: null }, ["postgres-privileges"]],
    [{ meteredHour: hourAt(systemClock.nowMs()) + 30 }, ["spending-ahead"]],
    [{ meteredHour: undefined }, []],
  ])("%j are the findings %j", (facts, ids) => expect(findingsOf(facts)).toEqual(ids));
});

describe("signs of incidents in metrics", () => {
  const nowMs = 1_800_000_000_000;
  const findingsOf = (before: string, now: string) => {
    const readings = { before: new MetricsText(before), now: new MetricsText(now), nowMs };
    return serviceSigns.flatMap(({ id, problems }) => problems(readings).map(() => id));
  };

  // Those that no test plants in a real service.
  it.each([
    ['latchkey_shed_total{what="call"} 5', 'latchkey_shed_total{what="call"} 6', ["service-shedding"]],
    [
      'latchkey_call_seconds_count{method="KeysService/VerifyKey",protocol="json",code="OK"} 1',
      'latchkey_call_seconds_count{method="KeysService/VerifyKey",protocol="json",code="SERVICE_UNAVAILABLE"} 1',
      ["service-undecided"],
    ],
    ['latchkey_call_seconds_count{code="OK"} 1', 'latchkey_call_seconds_count{code="OK"} 9', []],
    ["latchkey_unsettled_denials_total 1", "latchkey_unsettled_denials_total 2", ["service-strict-unsettled"]],
    ["", "latchkey_rate_limit_windows_full_total 2", ["service-windows-full"]],
    ["", 'latchkey_ledger_clock_jumps_total{direction="forward"} 1', ["service-clock-jumped"]],
    ["", "latchkey_serving_failures_total 1", ["service-failures"]],
    ["", "process_open_fds 900\nprocess_max_fds 1000", ["service-open-files"]],
    ["", "latchkey_change_feed_up 0\nlatchkey_database_up 1", ["service-change-feed-away"]],
    ["", "latchkey_change_feed_up 0\nlatchkey_data_file_up 0", ["service-data-file-down"]],
    ["", "latchkey_permit_ledger_up 0", ["service-ledger-away"]],
    [
      "",
      'latchkey_coordinator_up{address="a:1"} 1\nlatchkey_coordinator_ledger_up{address="a:1"} 0',
      ["service-ledger-away"],
    ],
    // An edge without Redis has this gauge too: it is about its coordinators.
    ["", "latchkey_rate_limit_sync_up 0", []],
    ["", `latchkey_certificate_expires_seconds{port="internal"} ${nowMs / 1000 - 1}`, ["certificate-expired"]],
  ])("%s, then %s: %j", (before, now, ids) => expect(findingsOf(before, now)).toEqual(ids));

  it.each([
    ["public", "LATCHKEY_TLS_CERT and LATCHKEY_TLS_KEY"],
    ["internal", "LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY"],
  ])("name the files of the %s port's certificate, and say whether it has ended", (port, files) => {
    const toldOf = (endsMs: number) => {
      const now = new MetricsText(`latchkey_certificate_expires_seconds{port="${port}"} ${endsMs / 1000}`);
      const readings = { before: now, now, nowMs };
      return serviceSigns.flatMap(({ id, problems, fix }) => problems(readings).map((problem) => [id, problem, fix]));
    };
    const fix = `Renew the certificate and replace the files of ${files}.`;
    const sentence = `the certificate of the ${port} port`;
    expect(toldOf(nowMs - 1000)).toEqual([
      ["certificate-expired", `${sentence} ended at 2027-01-15T07:59:59.000Z`, fix],
    ]);
    expect(toldOf(nowMs + 1000)).toEqual([
      ["certificate-ends-soon", `${sentence} ends at 2027-01-15T08:00:01.000Z`, fix],
    ]);
  });

  it("use only metrics that are documented", () => {
    const source = readText("src/doctor/service-signs.ts") + readText("src/doctor/incident-signs.ts");
    const used = [...source.matchAll(/"((?:latchkey|process)_\w+)"/g)].map(([, name = ""]) => name);
    const documented = readText("docs/metrics.md");
    const isKnown = (name: string) => documented.includes(`\`${name.replace(/_(count|sum)$/, "")}\``);
    expect(used.length).toBeGreaterThan(15);
    expect(used.filter((name) => !isKnown(name))).toEqual([]);
  });
});
