import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { sized } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { pidsOfWorkers } from "./start-workers.ts";

const name = "latchkey_event_loop_delay_seconds";
const stoppedMs = 700;

const alone = { workers: 1, processes: ["main"] };
const several = { workers: 2, processes: ["main", "1", "2"] };

it.each(sized([several], [alone]))(
  "a process with LATCHKEY_WORKERS=$workers shows how late each of its processes is",
  async (given) => {
    const { workers, processes } = given;
    const latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_WORKERS: String(workers) });

    /** For each process: how many samples there are, and how many of them were later than half a second. */
    async function measured() {
      const printed = await (await fetch(`${latchkey.internalUrl}/metrics`)).text();
      const told = Array.from(
        printed.matchAll(new RegExp(`^${name}_count{worker="(\\w+)"}`, "gm")),
        ([, worker]) => worker,
      );
      expect(told).toEqual(processes);
      return processes.map((worker) => {
        const samples = sumMetric(printed, `${name}_count{worker="${worker}"}`);
        return { samples, late: samples - sumMetric(printed, `${name}_bucket{le="0.5",worker="${worker}"}`) };
      });
    }

    // Behind the start, which is work of its own.
    await vi.waitFor(async () => {
      for (const { samples } of await measured()) expect(samples).toBeGreaterThan(10);
    });
    const before = await measured();
    const pids = [latchkey.pid, ...pidsOfWorkers(latchkey).values()];
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    await delay(stoppedMs);
    for (const pid of pids) process.kill(pid, "SIGCONT");
    await vi.waitFor(async () => {
      for (const [i, { late }] of (await measured()).entries()) expect(late).toBeGreaterThan(before[i]?.late as number);
    });
  },
);
