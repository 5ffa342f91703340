/** One series for promtool, over time. */
export interface InputSeries {
  readonly series: string;
  readonly values: string;
}

/** What a service said of itself at one moment, in Prometheus' text form. */
export interface Scrape {
  readonly text: string;
  readonly atUnixSeconds: number;
}

/** Of half a minute each. */
const stepsBefore = 12;
const stepsAfter = 20;
export const interval = "30s";
export const beforeTheFault = `${stepsBefore / 2 - 1}m`;
export const theEnd = `${(stepsBefore + stepsAfter) / 2}m`;

/**
 * Stretches two scrapes over a quarter of an hour, so that nobody waits for it: for six minutes nothing changes, then the service is
 * as the second one says. Counters go on to grow by what they have grown between the two. Without a first one it was as the
 * second one says all the time. Only series of these names: the others would cost promtool most of its time.
 */
export function stretch(
  instance: string,
  names: ReadonlySet<string>,
  { before, after }: { readonly before?: Scrape; readonly after: Scrape },
): InputSeries[] {
  const first = before && samplesOf(before);
  const asked = [...samplesOf(after)].filter(([series]) => names.has(series.replace(/\{.*/, "")));
  return asked.map(([series, { value, isCounter }]) => {
    const start = first === undefined ? value : first.get(series)?.value;
    const grownBy = isCounter ? value - (start ?? 0) : 0;
    const beforehand = start === undefined ? `_x${stepsBefore}` : `${start}+0x${stepsBefore - 1}`;
    return {
      series: series.replace(/(\{|$)/, (brace) => `{instance="${instance}"${brace === "{" ? "," : "}"}`),
      values: `${beforehand} ${value}${grownBy < 0 ? "-" : "+"}${Math.abs(grownBy)}x${stepsAfter}`,
    };
  });
}

function samplesOf({ text, atUnixSeconds }: Scrape): Map<string, { value: number; isCounter: boolean }> {
  const samples = new Map<string, { value: number; isCounter: boolean }>();
  let isCounter = false;
  for (const line of text.split("\n")) {
    const [, type] = /^# TYPE \w+ (\w+)$/.exec(line) ?? [];
    if (type !== undefined) isCounter = type !== "gauge";
    const [, series = "", number = ""] = /^([^#].*) (\S+)$/.exec(line) ?? [];
    // promtool's clock begins at 0: moments are told from there.
    const isMoment = series.includes("_certificate_expires_");
    const value = Number(number) - (isMoment ? atUnixSeconds : 0);
    if (series !== "" && Number.isFinite(value)) samples.set(series, { value, isCounter });
  }
  return samples;
}
