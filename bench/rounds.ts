/** One measured thing: the median of its rounds, and how far they differ. */
export interface Measured {
  readonly median: number;
  /** Of the rounds, the slowest and the fastest. */
  readonly spread: readonly [number, number];
}

export interface Turns {
  readonly rounds: number;
  readonly roundMs: number;
  readonly warmUpMs?: number;
}

/** Runs for about so long and answers a number. */
type Run = (ms: number) => Promise<number>;

/**
 * Measures several things in the same run, in turns, so that other work of the machine slows all of them equally. Each is
 * warmed up once. They answer how much they did.
 */
export function inTurns<Name extends string>(
  contestants: Readonly<Record<Name, Run>>,
  turns: Turns,
): Promise<Record<Name, Measured>> {
  const timed = Object.entries<Run>(contestants).map(([name, run]) => {
    const ratePerSecond: Run = async (ms) => {
      const startedMs = performance.now();
      return ((await run(ms)) * 1000) / (performance.now() - startedMs);
    };
    return [name, ratePerSecond];
  });
  return measureInTurns(Object.fromEntries(timed) as Record<Name, Run>, turns);
}

/** The same of contestants that know their rate: those whose programs take a while to begin. */
export async function measureInTurns<Name extends string>(
  contestants: Readonly<Record<Name, Run>>,
  { rounds, roundMs, warmUpMs = roundMs / 2 }: Turns,
): Promise<Record<Name, Measured>> {
  const names = Object.keys(contestants) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (const name of names) await contestants[name](warmUpMs);
  for (let round = 0; round < rounds; round++) {
    for (const name of names) rates[name].push(await contestants[name](roundMs));
  }
  return Object.fromEntries(names.map((name) => [name, summarise(rates[name])])) as Record<Name, Measured>;
}

/** Keeps so many calls in flight for a while and answers how many were done. */
export async function keepBusy(inFlight: number, ms: number, call: (n: number) => Promise<unknown>): Promise<number> {
  const untilMs = performance.now() + ms;
  let started = 0;
  let done = 0;
  const caller = async () => {
    while (performance.now() < untilMs) {
      await call(started++);
      done++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  return done;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

function summarise(rates: readonly number[]): Measured {
  return { median: median(rates), spread: [Math.min(...rates), Math.max(...rates)] };
}

export function row(name: string, { median, spread }: Measured, against: Measured, digits = 1): string {
  const ratio = (median / against.median).toFixed(digits);
  const [low, high] = spread.map((rate) => Math.round(rate));
  return `| ${name} | ${Math.round(median)} | ${low}–${high} | ${ratio} × |`;
}
