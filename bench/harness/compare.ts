import { setTimeout as delay } from "node:timers/promises";
import type { ServerProcess } from "../contestants/server-process.ts";
import type { Load } from "../loads/load-programs.ts";
import { type Measured, measureInTurns, median, row, type Turns } from "../rounds.ts";

export interface Contestant {
  readonly title: string;
  readonly server: ServerProcess;
  readonly load: Load;
}

export interface Comparison<Name extends string> {
  readonly table: string;
  /** The processor time that each request took of the server, median of the rounds. */
  readonly cpuMicros: Readonly<Record<Name, number>>;
  readonly measured: Readonly<Record<Name, Measured>>;
  ratio(name: Name, against: Name): number;
  /** How many requests it serves for the processor time that one of the other takes: the median of the rounds' ratios. */
  cpuRatio(name: Name, against?: Name): number;
}

/**
 * The first is what the table measures the others by. Beside the throughput stands the server's own processor time for each
 * request: where others use the machine too, it is the better of the two to go by.
 */
export async function compare<Name extends string>(
  title: string,
  contestants: Readonly<Record<Name, Contestant>>,
  turns: Turns,
): Promise<Comparison<Name>> {
  const names = Object.keys(contestants) as Name[];
  const micros = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  const refused = new Map<Name, number>();
  const runs = names.map((name) => {
    const { server, load } = contestants[name];
    const run = async (ms: number) => {
      await settled(server);
      const before = server.cpuMs();
      const served = await load(ms);
      micros[name].push(((server.cpuMs() - before) * 1000) / served.count);
      if (served.refused > 0) refused.set(name, (refused.get(name) ?? 0) + served.refused);
      return served.perSecond;
    };
    return [name, run] as const;
  });
  const measured = await measureInTurns(
    Object.fromEntries(runs) as Record<Name, (ms: number) => Promise<number>>,
    turns,
  );
  // The first was the warm-up.
  const cpu = names.map((name) => [name, median(micros[name].slice(1))]);
  const cpuMicros = Object.fromEntries(cpu) as Record<Name, number>;

  const first = names[0] as Name;
  // Round by round: neighbours were measured within seconds, in the same state of the machine.
  const cpuRatio = (name: Name, against = first) =>
    median(micros[against].slice(1).map((others, round) => others / (micros[name][round + 1] as number)));
  const columns = [`${title}: requests per second`, "median", "spread", "ratio", "CPU µs each", "CPU ratio"];
  const head = `| ${columns.join(" | ")} |\n${"|---".repeat(columns.length)}|`;
  const lines = names.map((name) => {
    const line = row(contestants[name].title, measured[name], measured[first], 2);
    return `${line} ${cpuMicros[name].toFixed(1)} | ${cpuRatio(name).toFixed(2)} × |`;
  });
  const remarks = [...refused].map(
    ([name, count]) => `\n${contestants[name].title}: ${count} answers were not 200, warm-up included; not counted.`,
  );
  return {
    table: [head, ...lines, ...remarks].join("\n"),
    cpuMicros,
    measured,
    cpuRatio,
    ratio: (name, against) => measured[name].median / measured[against].median,
  };
}

const quietMs = 50;
const settleMsMax = 3000;

/** A load ends with requests under way. A slow server would still work on them in the next round. */
async function settled(server: ServerProcess): Promise<void> {
  const untilMs = performance.now() + settleMsMax;
  for (let before = Number.NaN; server.cpuMs() !== before && performance.now() < untilMs; await delay(quietMs)) {
    before = server.cpuMs();
  }
}
