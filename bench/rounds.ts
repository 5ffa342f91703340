/** What was measured of one thing: the median of its rounds, and how far they lie apart. */
export interface Measured {
  readonly perSecond: number;
  /** Of the rounds, the slowest and the fastest. */
  readonly spread: readonly [number, number];
}

/**
 * Measures several things in the same run, in turns, so that whatever else the machine does meets them all alike. Each is
 * warmed up once.
 */
export async function inTurns<Name extends string>(
  contestants: Readonly<Record<Name, (ms: number) => Promise<number>>>,
  options: { rounds: number; roundMs: number; warmUpMs?: number },
): Promise<Record<Name, Measured>> {
  const names = Object.keys(contestants) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (const name of names) await contestants[name](options.warmUpMs ?? options.roundMs / 2);
  for (let round = 0; round < options.rounds; round++) {
    for (const name of names) {
      const startedMs = performance.now();
      const done = await contestants[name](options.roundMs);
      rates[name].push((done * 1000) / (performance.now() - startedMs));
    }
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

function summarise(rates: readonly number[]): Measured {
  const sorted = [...rates].sort((a, b) => a - b);
  const perSecond = sorted[sorted.length >> 1] ?? 0;
  return { perSecond, spread: [sorted[0] ?? 0, sorted.at(-1) ?? 0] };
}

export function row(name: string, { perSecond, spread }: Measured, against: Measured, digits = 1): string {
  const ratio = (perSecond / against.perSecond).toFixed(digits);
  const [low, high] = spread.map((rate) => Math.round(rate));
  return `| ${name} | ${Math.round(perSecond)} | ${low}–${high} | ${ratio} × |`;
}
