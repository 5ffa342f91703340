import { errorCodes } from "../../src/rpc/api-error.ts";
import { exportedMetrics } from "../docs/documented-metrics.ts";
import { readExpression, type Selector } from "./promql.ts";

/** What services export: metrics with their type, their labels and the values that these have. */
export class ExportedNames {
  readonly #types = new Map<string, string>();
  readonly #labels = new Map<string, Set<string>>();
  readonly #text: string;

  constructor(scrapes: readonly string[]) {
    for (const scrape of scrapes) {
      for (const [name, { type, labels = [] }] of Object.entries(exportedMetrics(scrape))) {
        this.#types.set(name, type);
        const known = this.#labels.get(name) ?? new Set(addedByPrometheus);
        this.#labels.set(name, new Set([...known, ...labels, ...(type === "histogram" ? ["le"] : [])]));
      }
    }
    this.#text = scrapes.join("\n");
  }

  /** What an expression asks for that is not exported. */
  problemsWith(expression: string): string[] {
    const { selectors, groupedBy } = readExpression(expression);
    const labels = new Set(selectors.flatMap(({ metric }) => [...(this.#labels.get(this.#metricOf(metric)) ?? [])]));
    return [
      ...selectors.flatMap((selector) => this.#problemsWithSelector(selector)),
      ...groupedBy.filter((label) => !labels.has(label)).map((label) => `nothing in it has the label ${label}`),
    ];
  }

  #problemsWithSelector({ metric, matchers }: Selector): string[] {
    const name = this.#metricOf(metric);
    const labels = this.#labels.get(name);
    if (labels === undefined) return [`${metric} is not exported`];
    return matchers.flatMap(({ label, value }) => {
      if (!labels.has(label)) return [`${metric} has no label ${label}`];
      // A variable of the dashboard stands for any value.
      const values = value.startsWith("$") ? [] : value.split("|");
      const unknown = values.filter((each) => !this.#hasValue(name, label, each));
      return unknown.map((each) => `${metric} never has ${label}="${each}"`);
    });
  }

  #metricOf(series: string): string {
    const histogram = series.replace(/_(bucket|sum|count)$/, "");
    return this.#types.get(histogram) === "histogram" ? histogram : series;
  }

  /** Codes of errors that did not happen here may happen elsewhere. */
  #hasValue(metric: string, label: string, value: string): boolean {
    if (metric === "latchkey_call_seconds" && label === "code" && value in errorCodes) return true;
    return new RegExp(`^${metric}(_\\w+)?\\{.*\\b${label}="${value}"`, "m").test(this.#text);
  }
}

const addedByPrometheus = ["instance"];
