export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What a service exports, at one moment. */
export class MetricsText {
  readonly samples: readonly Sample[];

  /** In the text format of Prometheus. Lines that are none of it are left out. */
  constructor(text: string) {
    this.samples = text.split("\n").flatMap((line) => {
      const { name, labels = "", value } = sampleForm.exec(line)?.groups ?? {};
      return name === undefined ? [] : [{ name, labels: parseLabels(labels), value: Number(value) }];
    });
  }

  of(name: string): readonly Sample[] {
    return this.samples.filter((sample) => sample.name === name);
  }

  /** Over all labels, or those for which the test is true. Undefined where there is none. */
  sum(name: string, wanted: (labels: Sample["labels"]) => boolean = () => true): number | undefined {
    const values = this.of(name).filter(({ labels }) => wanted(labels));
    return values.length === 0 ? undefined : values.reduce((sum, { value }) => sum + value, 0);
  }
}

const sampleForm = /^(?<name>[a-z]\w*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/;

function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
}
