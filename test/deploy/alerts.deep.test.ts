import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { documentedMetrics } from "../docs/documented-metrics.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { readText, root } from "../support/repository.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { ExportedNames } from "./exported-names.ts";
import { type Fault, faults, keysOf, scrape, scrapeTls, start, verifyAll } from "./planted-faults.ts";
import { readExpression } from "./promql.ts";
import { checkExpressions, checkRules, testRules } from "./promtool.ts";
import { beforeTheFault, interval, type Scrape, stretch, theEnd } from "./promtool-series.ts";

const rulesFile = join(root, "deploy/prometheus/rules.yml");
const rules = readText("deploy/prometheus/rules.yml").split(/^ {6}- (?=alert: )/m);
const alerts = rules.slice(1).map((text) => ({ name: /^alert: (\w+)/.exec(text)?.[1] ?? "", text }));
const dashboard = JSON.parse(readText("deploy/grafana/latchkey.json")) as {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
};

/** All expressions, by where they stand. Variables of Grafana are given a value where the language needs one. */
const expressions: Readonly<Record<string, string>> = Object.fromEntries([
  ...alerts.map(({ name, text }) => [name, /^ {8}expr: (?:>-\n)?(.*?)\n {8}\w/ms.exec(text)?.[1] ?? ""]),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }, i) => [`${title} ${i}`, expr.replaceAll("$__rate_interval", "5m")]),
  ),
]);

const namesInRules = new Set(
  alerts.flatMap(({ name }) => readExpression(expressions[name] as string).selectors.map(({ metric }) => metric)),
);

/** Of everything that was started here. */
const scrapes: Scrape[] = [];

/** What promtool finds wrong: each of a fault's alerts has to fire, and none of them before it was there. */
function problemsWith(faultsPlanted: readonly Fault[]): string {
  scrapes.push(...faultsPlanted.flatMap(({ before, after }) => [before ?? after, after]));
  const checks = faultsPlanted.flatMap(({ alerts: names, before }, i) => {
    const matcher = `instance="${i}",alertname=~"${names.join("|")}"`;
    const beforehand = before === undefined ? [] : [fired(matcher, beforeTheFault, [])];
    return [...beforehand, fired(matcher, theEnd, names)];
  });
  return problemsOf(faultsPlanted, checks);
}

function problemsOf(instances: readonly Pick<Fault, "before" | "after">[], checks: readonly object[]): string {
  const series = instances.flatMap((instance, i) => stretch(String(i), namesInRules, instance));
  const test = { interval, input_series: series, promql_expr_test: checks };
  return testRules({ rule_files: [rulesFile], evaluation_interval: interval, tests: [test] });
}

/** That these alerts and no others, among those that the matcher selects, have fired until then. */
function fired(matcher: string, until: string, names: readonly string[]): object {
  const alerting = `max_over_time(ALERTS{alertstate="firing",${matcher}}[${until}])`;
  const samples = names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  return { expr: `group by (alertname) (${alerting})`, eval_time: until, exp_samples: samples };
}

describe.runIf(hasPostgres)("the alert rules", () => {
  it("are rules, and each says what happened and where to read on", () => {
    expect(checkRules(rulesFile)).toBe("");
    expect(alerts.length).toBeGreaterThan(15);
    const headings = readText("docs/operations.md").matchAll(/^##+ (.*)$/gm);
    const anchors = Array.from(headings, ([, text = ""]) => text.toLowerCase().replace(/[^\w -]/g, ""));
    const pages = [...anchors.map((text) => text.replaceAll(" ", "-"))];
    for (const { name, text } of alerts) {
      expect(text, name).toMatch(/ severity: (critical|warning)\n.* summary: ".*".* description: ".*"/s);
      expect(pages, name).toContain(/ runbook_url: docs\/operations\.md#(\S+)/.exec(text)?.[1]);
    }
  });

  it("are silent on a service that is used and lacks nothing", async () => {
    const files = makeCertificate(tempFolder(), "internal", undefined, undefined, 60);
    const server = await startLatchkey({
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_INTERNAL_TLS_CERT: files.certificate,
      LATCHKEY_INTERNAL_TLS_KEY: files.key,
      LATCHKEY_WORKERS: "2",
    });
    const internalPort = Number(new URL(server.internalUrl).port);
    const keys = keysOf(server);
    const { key } = await keys.createKey({ apiId: "api", remaining: 100, ratelimit: { limit: 5, duration: 600_000 } });
    const quiet = async () => {
      const before = await scrapeTls({ internalPort });
      await verifyAll(keys, key, 20);
      await verifyAll(keys, "not a key", 1);
      await delay(300);
      const after = await scrapeTls({ internalPort });
      scrapes.push(after);
      expect(problemsOf([{ before, after }], [fired("", theEnd, [])])).toBe("");
    };
    // A machine whose processors others take is not quiet: it is given more time.
    await vi.waitFor(quiet, { timeout: 120_000 });
  });

  it("tell of each planted fault, and of none before it was there", async () => {
    const blocked = await start();
    const before = await scrape(blocked);
    const untilMs = Date.now() + 300;
    while (Date.now() < untilMs);
    await delay(50);
    const lateLoop = { alerts: ["LatchkeyEventLoopDelayed"], before, after: await scrape(blocked) };

    const planted = await Promise.all(Object.values(faults).map((plant) => plant()));
    const all: Fault[] = [lateLoop, ...planted.flat()];
    expect(problemsWith(all)).toBe("");
    const told = new Set(all.flatMap((fault) => fault.alerts));
    expect([...told].sort()).toEqual(alerts.map(({ name }) => name).sort());
    // Control: an alert that nothing has caused is missed.
    expect(problemsWith([{ ...lateLoop, alerts: ["LatchkeyDatabaseDown"] }])).toContain("got: nil");
  });

  it("and the dashboard ask for nothing that is not exported", () => {
    const exported = new ExportedNames(scrapes.map(({ text }) => text));
    expect(checkExpressions(expressions)).toBe("");
    const problems = Object.entries(expressions).flatMap(([where, expression]) =>
      exported.problemsWith(expression).map((problem) => `${where}: ${problem}`),
    );
    expect(problems).toEqual([]);
  });

  it("would be found out if they asked for something else", () => {
    const exported = new ExportedNames(scrapes.map(({ text }) => text));
    const wrong: readonly (readonly [expression: string, problem: string])[] = [
      ["latchkey_databases_up == 0", "latchkey_databases_up is not exported"],
      ["sum by (code) (rate(latchkey_shed_total[5m]))", "nothing in it has the label code"],
      ['rate(latchkey_shed_total{kind="call"}[5m])', "latchkey_shed_total has no label kind"],
      ['rate(latchkey_shed_total{what=~"call|calls"}[5m])', 'latchkey_shed_total never has what="calls"'],
      ["latchkey_calls_waiting_bucket", "latchkey_calls_waiting_bucket is not exported"],
      ["vector(1) or time() - on () group_left (a) process_start_time", "process_start_time is not exported"],
    ];
    for (const [expression, problem] of wrong) expect(exported.problemsWith(expression)).toContain(problem);
    expect(checkExpressions({ wrong: "sum(latchkey_calls_waiting" })).toContain("parse error");
  });

  it("leave no metric of Latchkey's own out of the dashboard", () => {
    const asked = new Set(Object.values(expressions).flatMap((each) => readExpression(each).selectors));
    const shown = new Set([...asked].map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, "")));
    const own = Object.keys(documentedMetrics()).filter((name) => name.startsWith("latchkey_"));
    expect(own.filter((name) => !shown.has(name))).toEqual([]);
  });
});
