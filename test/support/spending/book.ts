import { hourAt, hourMs } from "../../../src/domain/usage.ts";
import type { LatchkeyClient } from "../../../src/sdk/index.ts";
import { surely } from "../create-surely.ts";
import { type KnownCounter, readCounter } from "../priced-load.ts";

type Counters = ReadonlyMap<string, KnownCounter>;

/** The tables, beside the service that uses them. */
export interface TablesBeside {
  /** The end of a SELECT that locks its rows, where a transaction does not lock everything. */
  readonly forUpdate: string;
  /** Runs statements as one transaction, and answers the rows of the first one. */
  run(...statements: readonly string[]): Promise<readonly Record<string, unknown>[]>;
}

/** What was taken from each counter while a page of the book was open, and the hours in which that was. */
interface Page {
  readonly fromHour: number;
  readonly toHour: number;
  readonly taken: ReadonlyMap<string, number>;
}

/**
 * What was taken from counters in each hour. An hour passes when a page is closed: everything that is stored of hours is
 * made an hour older then.
 */
export class SpendingBook {
  readonly #pages: Page[] = [];
  #fromHour = hourAt(Date.now());

  /** No balance may be changed by hand meanwhile. */
  async closePage(counters: Counters, { run, forUpdate }: TablesBeside): Promise<void> {
    const rows = await run(
      // Locked as charges lock them.
      `SELECT subject, remaining FROM counters ORDER BY subject ${forUpdate}`,
      "UPDATE counters SET metered_hour = metered_hour - 1 WHERE metered_hour > 0",
      // In two steps: no two readings of a counter may be of one hour in between.
      "UPDATE readings SET hour = -hour",
      "UPDATE readings SET hour = -hour - 1",
    );
    const left = new Map(rows.map(({ subject, remaining }) => [subject as string, Number(remaining)]));
    const takenBefore = (subject: string) => this.#pages.reduce((sum, { taken }) => sum + (taken.get(subject) ?? 0), 0);
    const taken = [...counters].map(([subject, { start }]) => {
      const takenInAll = start - (left.get(subject) ?? Number.NaN);
      return [subject, takenInAll - takenBefore(subject)] as const;
    });
    const toHour = hourAt(Date.now());
    this.#pages.push({ fromHour: this.#fromHour, toHour, taken: new Map(taken) });
    this.#fromHour = toHour;
  }

  /** What the service says of the counters and should not. Callers may have given up on uses that are charged meanwhile. */
  async problems(client: LatchkeyClient, counters: Counters): Promise<string[]> {
    for (;;) {
      const before = await this.#read(client, counters);
      const found = await this.#problems(client, counters, before);
      const after = await this.#read(client, counters);
      if (JSON.stringify([...before]) === JSON.stringify([...after])) return found;
    }
  }

  async #read(client: LatchkeyClient, counters: Counters) {
    const read = [...counters].map(
      async ([subject, counter]) => [subject, await readCounter(client, counter)] as const,
    );
    return new Map(await Promise.all(read));
  }

  async #problems(
    client: LatchkeyClient,
    counters: Counters,
    stored: ReadonlyMap<string, { readonly remaining: number; readonly spent: number }>,
  ): Promise<string[]> {
    const problems: string[] = [];
    for (const of of ["key", "owner"] as const) {
      const asked = [...counters].filter(([, counter]) => counter.of === of);
      const ids = asked.map(([, { id }]) => id);
      const [inAll, hourly] = await Promise.all(
        (["total", "hour"] as const).map(async (granularity) => {
          const range = { start: this.#hourAfterClosing(0) * hourMs, end: (hourAt(Date.now()) + 2) * hourMs };
          const which = of === "key" ? { keyIds: ids } : { ownerIds: ids };
          return (await surely(() => client.usage.getSpending({ ...which, ...range, granularity }))).results;
        }),
      );
      asked.forEach(([subject, { start, acknowledged, open }], i) => {
        const { remaining, spent } = stored.get(subject) as { remaining: number; spent: number };
        const expect = (what: string, actual: number | undefined, wanted: number) => {
          if (actual !== wanted) problems.push(`${subject}: ${what} is ${actual}, not ${wanted}`);
        };
        const taken = start - remaining;
        const buckets = hourly?.[i]?.buckets ?? [];
        expect("what is left", inAll?.[i]?.remaining, remaining);
        expect("what was spent", inAll?.[i]?.spent, taken);
        expect("what was spent since it is metered", spent, taken);
        expect("the sum of all hours", sumOf(buckets), taken);
        this.#pages.forEach((page, at) => {
          const [from, to] = [this.#hourAfterClosing(at), this.#hourAfterClosing(at, page.toHour)];
          const ofPage = buckets.filter(({ start }) => start >= from * hourMs && start <= to * hourMs);
          expect(`what was spent in hour ${at + 1}`, sumOf(ofPage), page.taken.get(subject) as number);
        });
        if (spent < acknowledged) problems.push(`${subject} has lost ${acknowledged - spent} uses`);
        if (spent > acknowledged + open)
          problems.push(`${subject} has spent ${spent}: ${acknowledged} are known, and ${open} in doubt`);
      });
    }
    return problems;
  }

  /** Where an hour of that page is by now: by default its first one. */
  #hourAfterClosing(at: number, hour = this.#pages[at]?.fromHour ?? this.#fromHour): number {
    return hour - (this.#pages.length - at);
  }
}

function sumOf(buckets: readonly { readonly spent: number }[]): number {
  return buckets.reduce((sum, { spent }) => sum + spent, 0);
}
