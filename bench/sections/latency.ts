import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type LoggedAnswer, latenciesOf, oddAnswers } from "../../test/support/answer-log.ts";
import { freePort } from "../../test/support/local-server.ts";
import { startFloor } from "../contestants/floors.ts";
import { latchkeyEntry, rootKey, startLatchkey } from "../contestants/latchkey.ts";
import type { Bench, Section } from "../harness/section.ts";
import { loadCore } from "../loads/load-programs.ts";
import { type Measured, measureInTurns, median } from "../rounds.ts";

const starts = 5;
const startMsMax = 30_000;

export const latency: Section<"alone" | "floorP99" | "p99" | "ready"> = {
  title: "Latency",
  how: "One cached key, embedded store. Alone: one connection, one request at a time (wrk), the median of the rounds' medians. Half load: half of the requests per second that the same server reaches with 32 connections, sent at a steady pace by a client on the other core; it sends what is due every millisecond, so a few wait for each other. Ready: from the start of the process to the first 200 of `/readyz`, in an empty data folder, not pinned.",
  goals: {
    alone: { what: "p50 of one request at a time, beside bare `node:http`", unit: "×", atMost: 1.3 },
    p99: { what: "p99 at half load", unit: "ms" },
    floorP99: { what: "p99 of bare `node:http` at the same rate", unit: "ms" },
    ready: { what: `start to ready, median of ${starts}`, unit: "s", atMost: 1 },
  },
  async measure(bench) {
    const ready = await startTimesMs(bench);
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
    const said = `Half load was ${pace.perSecond} requests per second. Starts took ${ready.map((ms) => ms.toFixed(0)).join(", ")} ms.`;
    return {
      text: [table.join("\n"), said],
      figures: { alone: alone.latchkey.median / alone.floor.median, floorP99, p99, ready: median(ready) / 1000 },
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

async function startTimesMs(bench: Bench): Promise<number[]> {
  const times: number[] = [];
  while (times.length < starts) times.push(await startTimeMs(bench));
  return times;
}

async function startTimeMs(bench: Bench): Promise<number> {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    PORT: `${port}`,
    LATCHKEY_INTERNAL_PORT: "0",
    LATCHKEY_DATA_DIR: mkdtempSync(join(bench.folder, "start-")),
    LATCHKEY_ROOT_KEY: rootKey,
    LATCHKEY_LOG_LEVEL: "warn",
  };
  const startedMs = performance.now();
  const child = spawn(process.execPath, [latchkeyEntry, "serve"], { env, stdio: ["ignore", "ignore", "inherit"] });
  bench.atEnd(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  while (!(await isReady(port))) {
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (hasEnded || performance.now() - startedMs > startMsMax) throw new Error("Latchkey did not get ready");
    await delay(5);
  }
  const tookMs = performance.now() - startedMs;
  child.kill("SIGKILL");
  await exited;
  return tookMs;
}

function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  );
}
