// Makes the alert rules, and "when to worry" in docs/metrics.md, of the table of signs that the doctor goes by.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type IncidentSign, incidentSigns } from "../src/doctor/incident-signs.ts";

const root = join(import.meta.dirname, "..");

/** The files by their paths in the repository. */
export function emitIncidentSigns(): ReadonlyMap<string, string> {
  const page = readFileSync(join(root, "docs/metrics.md"), "utf8");
  return new Map([
    ["deploy/prometheus/rules.yml", rulesHead + incidentSigns.flatMap(ruleOf).join("\n")],
    ["docs/metrics.md", withWorries(page)],
  ]);
}

const rulesHead = `# Alerts for Latchkey. docs/metrics.md says how to load them and what each metric means. Every alert is by instance, which
# Prometheus adds to what it scrapes. critical: callers get no decision, or revoked keys may be served. warning: look today.
# Made by \`npm run generate\` of src/doctor/incident-signs.ts.
groups:
  - name: latchkey
    rules:
`;

function ruleOf(sign: IncidentSign): string[] {
  if (sign.alert === undefined) return [];
  const [name, severity, forTime] = sign.alert;
  const isNew = sign.condition.kind === "grown" && sign.condition.isNew;
  return [
    `      - alert: ${name}
${isNew ? "        # A series begins with its first event, which increase() does not see: so the second line.\n" : ""}        expr: ${expressionOf(sign)}
${forTime === undefined ? "" : `        for: ${forTime}\n`}        labels:
          severity: ${severity}
        annotations:
          summary: ${JSON.stringify(sign.summary)}
          description: ${JSON.stringify(sign.meaning)}
          runbook_url: docs/operations.md#${sign.runbook}
`,
  ];
}

function expressionOf({ metrics, condition }: IncidentSign): string {
  const [name = ""] = metrics;
  switch (condition.kind) {
    case "zero":
      return metrics.map((each) => `${condition.ofAll ? `max by (instance) (${each})` : each} == 0`).join(" or ");
    case "grown": {
      const { within, above = 0, by, isNew } = condition;
      const series = name + selectorOf(condition.where);
      const sum = (text: string) => (by === undefined ? text : `sum by (${["instance", ...by].join(", ")}) (${text})`);
      const grown = `${sum(`increase(${series}[${within}])`)} > ${above}`;
      if (!isNew) return grown;
      return `>-\n          ${grown}\n          or ${sum(`${series} unless ${series} offset ${within}`)} > ${above}`;
    }
    case "slow": {
      const by = ["instance", ...(condition.by ?? []), "le"].join(", ");
      const rate = `rate(${name}_bucket${selectorOf(condition.where)}[5m])`;
      return `histogram_quantile(0.99, sum by (${by}) (${rate})) > ${condition.above}`;
    }
    case "ends":
      return `${name} - time() < ${condition.withinMs / 1000}`;
    case "share":
      return `${name} > ${condition.above} * ${condition.of}`;
    case "grown earlier":
      throw new Error("no alert looks back to the start");
  }
}

function selectorOf(where: Readonly<Record<string, readonly string[]>> = {}): string {
  const labels = Object.entries(where).map(
    ([label, values]) => `${label}${values.length > 1 ? "=~" : "="}"${values.join("|")}"`,
  );
  return labels.length === 0 ? "" : `{${labels.join(",")}}`;
}

/** The page with the last cell of each metric's row that the table knows. The others are written by hand. */
function withWorries(page: string): string {
  const signsOf = Map.groupBy(
    incidentSigns.flatMap((sign) => sign.metrics.map((name) => ({ name: name.replace(/_count$/, ""), sign }))),
    ({ name }) => name,
  );
  return page.replace(/^(\| `(\w+)`.* \| )[^|]+( \|)$/gm, (row, cells, name, end) => {
    const worries = signsOf.get(name)?.flatMap(({ sign }) => worryOf(sign)) ?? [];
    return worries.length === 0 ? row : cells + worries.join(" ") + end;
  });
}

function worryOf(sign: IncidentSign): string[] {
  const { meaning, alert, runbook } = sign;
  if (meaning === undefined) return [];
  const name = alert === undefined ? "" : ` (\`${alert[0]}\`)`;
  const link = runbook === undefined ? "" : ` [What to do](operations.md#${runbook}).`;
  const settings = meaning.replace(/\bLATCHKEY_\w+|ratelimits\.limit|ulimit -n/g, "`$&`");
  return [`${whenOf(sign)}${name}. ${settings}${link}`];
}

function whenOf({ condition }: IncidentSign): string {
  switch (condition.kind) {
    case "zero":
      return condition.ofAll ? "When all are 0" : "When it is 0";
    case "grown": {
      const counted = Object.values(condition.where ?? {}).flat();
      if (counted.length > 0) return `When ${counted.map((value) => `\`${value}\``).join(" or ")} is counted`;
      return condition.above === undefined
        ? "When it rises"
        : `When it rises by more than ${condition.above} in ${condition.within}`;
    }
    case "slow": {
      const of = Object.values(condition.where ?? {}).flat();
      const what = of.length === 0 ? "" : ` of ${of.map((value) => `\`${value}\``).join(" or ")}`;
      return `When its 99th percentile${what} is above ${condition.above}`;
    }
    case "ends":
      return `Less than ${condition.withinMs / 86_400_000} days before`;
    case "share":
      return `Above ${100 * condition.above} % of \`${condition.of}\``;
    case "grown earlier":
      return "When it is not 0";
  }
}
