import { Counter, type Histogram, type Metric, type Registry } from "prom-client";

/*
 * Counters for what happens in every verification. prom-client sorts and hashes the labels at each increment, which costs
 * more than the verification itself. These keep their own numbers and pass them to prom-client when metrics are read.
 */

/** The name of one label, with the values that are known of it. */
export type ValuesOfLabel<Value> = Readonly<Record<string, readonly Value[]>>;

/**
 * Counts by the value of one label. The known values are there from the start, at 0: an alert on a counter's increase does
 * not see the first event of a series that begins with it.
 */
export function createTally<Value extends string>(
  registry: Registry,
  { name, help, values }: { name: string; help: string; values: ValuesOfLabel<Value> },
): (value: Value, count?: number) => void {
  const [[label, known]] = Object.entries(values) as [[string, readonly Value[]]];
  const counts = new Map<string, { count: number }>(known.map((value) => [value, { count: 0 }]));
  new Counter({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [value, { count }] of counts) this.inc({ [label]: value }, count);
    },
  });
  return (value, count = 1) => {
    const counted = counts.get(value);
    if (counted === undefined) counts.set(value, { count });
    else counted.count += count;
  };
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Values per bucket (not cumulative); the last entry counts those above all buckets. */
  readonly counts: number[];
  sum: number;
}

/** A histogram by the values of three labels. */
export class TalliedHistogram {
  readonly #labelNames: readonly [string, string, string];
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, Map<string, Map<string, Series>>>();

  constructor(
    registry: Registry,
    options: {
      readonly name: string;
      readonly help: string;
      readonly labelNames: readonly [string, string, string];
      readonly buckets: readonly number[];
    },
  ) {
    const { name, help } = options;
    const described = { name, help, type: "histogram", aggregator: "sum" };
    this.#labelNames = options.labelNames;
    this.#buckets = options.buckets;
    // Everything that the registry needs of a metric to print it.
    const metric = {
      ...described,
      reset: () => this.#series.clear(),
      get: async () => ({ ...described, values: this.#print(name) }),
    };
    registry.registerMetric(metric as unknown as Metric & Histogram);
  }

  observe(first: string, second: string, third: string, value: number): void {
    const series = this.#series.get(first)?.get(second)?.get(third) ?? this.#add(first, second, third);
    let bucket = 0;
    while (bucket < this.#buckets.length && value > (this.#buckets[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sum += value;
  }

  #add(first: string, second: string, third: string): Series {
    const [a, b, c] = this.#labelNames;
    const counts = Array.from({ length: this.#buckets.length + 1 }, () => 0);
    const series = { labels: { [a]: first, [b]: second, [c]: third }, counts, sum: 0 };
    const bySecond = this.#series.get(first) ?? new Map<string, Map<string, Series>>();
    const byThird = bySecond.get(second) ?? new Map<string, Series>();
    this.#series.set(first, bySecond.set(second, byThird.set(third, series)));
    return series;
  }

  #print(name: string): object[] {
    const all = [...this.#series.values()].flatMap((each) => [...each.values()]).flatMap((each) => [...each.values()]);
    return all.flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const buckets = [...this.#buckets, "+Inf"].map((le, index) => {
        count += counts[index] as number;
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
      });
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ];
    });
  }
}
