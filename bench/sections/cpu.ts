import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startFloor } from "../contestants/floors.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import { compare } from "../harness/compare.ts";
import type { Figure, Section } from "../harness/section.ts";
import type { Load } from "../loads/load-programs.ts";

const countedMs = 2000;

export const cpu: Section<"micros" | "floorMicros" | "instructions" | "floorInstructions"> = {
  title: "Processor time",
  how: "One cached key over JSON, embedded store, 32 connections. Time is what the system charges the server's process, its own part and the kernel's. Instructions are those of the process itself, counted by `perf stat` where the machine has counters.",
  goals: {
    micros: { what: "a verification", unit: "µs" },
    floorMicros: { what: "a request to bare `node:http`", unit: "µs" },
    instructions: { what: "instructions per verification", unit: "" },
    floorInstructions: { what: "instructions per request to bare `node:http`", unit: "" },
  },
  async measure(bench) {
    const latchkey = await startLatchkey(bench);
    const key = await latchkey.createKey();
    const floor = await startFloor(bench, "http", await latchkey.verify(key));
    const [onFloor, onLatchkey] = [bench.loads.json(floor.port, key), bench.loads.json(latchkey.port, key)];
    const { table, cpuMicros } = await compare(
      this.title,
      {
        floor: { title: "bare `node:http`", server: floor, load: onFloor },
        latchkey: { title: "Latchkey, cached key", server: latchkey, load: onLatchkey },
      },
      bench.turns,
    );
    return {
      text: [table],
      figures: {
        micros: cpuMicros.latchkey,
        floorMicros: cpuMicros.floor,
        instructions: await instructionsEach(latchkey, onLatchkey),
        floorInstructions: await instructionsEach(floor, onFloor),
      },
    };
  },
};

/** Virtual machines often have no counters. */
async function instructionsEach({ pid }: ServerProcess, load: Load): Promise<Figure> {
  const notHere = "not countable here";
  const perf = ["stat", "-x,", "-e", "instructions:u", "-p", `${pid}`, "--", "sleep", `${countedMs / 1000}`];
  const counted = promisify(execFile)("perf", perf).then(
    ({ stderr }) => Number(/^(\d+),/m.exec(stderr)?.[1]),
    () => Number.NaN,
  );
  const { perSecond } = await load(countedMs);
  const instructions = await counted;
  return instructions > 0 ? instructions / ((perSecond * countedMs) / 1000) : notHere;
}
