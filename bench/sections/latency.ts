import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type LoggedAnswer, latenciesOf, oddAnswers } from "../../test/support/answer-log.ts";
import { startFloor } from "../contestants/floors.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import type { Bench, Section } from "../harness/section.ts";
import { loadCore } from "../loads/load-programs.ts";
import { type Measured, measureInTurns } from "../rounds.ts";

export const latency: Section<"alone" | "floorP99" | "p99"> = {
  title: "Latency",
  how: "One cached key, embedded store. Alone: one connection, one request at a time (wrk), the median of the rounds' medians. Half load: half of the requests per second that the same server reaches with 32 connections, sent at a steady pace by a client on the other core; it sends what is due every millisecond, so a few wait for each other.",
  goals: {
    alone: { what: "p50 of one request at a time, beside bare `node:http`", unit: "×", atMost: 1.3 },
    p99: { what: "p99 at half load", unit: "ms" },
    floorP99: { what: "p99 of bare `node:http` at the same rate", unit: "ms" },
  },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const key = await latchkey.createKey();
    const floor = await startFloor(bench, "http", await latchkey.verify(key));
    // With one request at a time the compiler would take long to find out what is hot.
    const full = bench.loads.json(latchkey.port, key);
    await full(bench.turns.warmUpMs);
    const { perSecond } = await full(2 * bench.turns.roundMs);
    await bench.loads.json(floor.port, key)(bench.turns.warmUpMs);

    const { medianLatencyMicros } = bench.loads;
    const alone = await measureInTurns(
      { floor: medianLatencyMicros(floor.port, key), latchkey: medianLatencyMicros(latchkey.port, key) },
      { ...bench.turns, warmUpMs: 1000 },
    );
    const pace = { key, perSecond: Math.round(perSecond / 2), ms: 4000 };
    const [floorP99, p99] = [
      await p99Ms(bench, { ...pace, port: floor.port }),
      await p99Ms(bench, { ...pace, port: latchkey.port }),
    ];
    const table = ["| one request at a time | p50 µs | spread | ratio |", "|---|---|---|---|"];
    const line = (name: string, { median, spread }: Measured) =>
      `| ${name} | ${median} | ${spread.join("–")} | ${(median / alone.floor.median).toFixed(2)} × |`;
    table.push(line("bare `node:http`", alone.floor), line("Latchkey, cached key", alone.latchkey));
    const said = `Half load was ${pace.perSecond} requests per second.`;
    return {
      text: [table.join("\n"), said],
      figures: { alone: alone.latchkey.median / alone.floor.median, floorP99, p99 },
    };
  },
};

async function p99Ms(bench: Bench, order: { port: number; key: string; perSecond: number; ms: number }) {
  const script = join(import.meta.dirname, "../paced-load-process.ts");
  const caller = spawn("taskset", ["-c", loadCore, process.execPath, script], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    serialization: "advanced",
  });
  bench.atEnd(() => caller.kill());
  const { port, ...pace } = order;
  caller.send({ baseUrls: [`http://127.0.0.1:${port}`], ...pace });
  const [log] = (await Promise.race([once(caller, "message"), once(caller, "exit")])) as [LoggedAnswer[] | number];
  caller.kill();
  if (!Array.isArray(log)) throw new Error(`the caller has ended with ${log}`);
  const odd = oddAnswers(log);
  if (odd.length > 0) throw new Error(`not everything was served: ${odd.join(", ")}`);
  return latenciesOf(log)[Math.floor(log.length * 0.99)] as number;
}
