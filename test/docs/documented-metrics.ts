import { readText } from "../support/repository.ts";

/** What a page or an exporter says of one metric. */
export interface MetricShape {
  readonly type: string;
  /** In alphabetical order. */
  readonly labels: readonly string[];
}

export type Shapes = Readonly<Record<string, MetricShape>>;

/** The metrics on a page, by name. Throws if one of them is on it twice. */
export function documentedMetrics(page = readText("docs/metrics.md")): Shapes {
  const shapes: Record<string, MetricShape> = {};
  for (const [, names = "", type = "", labels = ""] of page.matchAll(row)) {
    for (const name of namesIn(names)) {
      if (name in shapes) throw new Error(`${name} is on the page twice`);
      shapes[name] = { type, labels: namesIn(labels).sort() };
    }
  }
  return shapes;
}

/** Names (several if they have type and labels in common), type, labels, meaning, when to worry: none is empty but labels. */
const row = /^\| (`[^|]+`) \| (counter|gauge|histogram|summary) \| ?([^|]*) \| [^|]+\. \| [^|]+\. \|$/gm;

function namesIn(cell: string): string[] {
  return Array.from(cell.matchAll(/`(\w+)`/g), ([, name]) => name as string);
}

/** What a scrape tells. A metric without a sample shows no labels: they are undefined. */
export function exportedMetrics(scrape: string): Record<string, { type: string; labels: string[] | undefined }> {
  const shapes: Record<string, { type: string; labels: string[] | undefined }> = {};
  let current: { type: string; labels: string[] | undefined } | undefined;
  for (const line of scrape.split("\n")) {
    const [, name, type] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) {
      current = { type, labels: undefined };
      shapes[name] = current;
    } else if (current !== undefined && line !== "" && !line.startsWith("#")) {
      const [, set = ""] = /^\w+\{(.*)\} /.exec(line) ?? [];
      const labels = Array.from(set.matchAll(/(\w+)="/g), ([, label]) => label as string);
      current.labels ??= [];
      for (const label of labels) if (label !== "le" && !current.labels.includes(label)) current.labels.push(label);
      current.labels.sort();
    }
  }
  return shapes;
}
