import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { sized } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";

const name = "latchkey_event_loop_delay_seconds";
const stoppedMs = 700;

const alone = { workers: 1, threads: ["main"] };
const several = { workers: 2, threads: ["main", "1", "2"] };

it.each(sized([several], [alone]))(
  "a process with LATCHKEY_WORKERS=$workers tells of each of its threads how late it is",
  async (given) => {
    const { workers, threads } = given;
    const latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_WORKERS: String(workers) });

    /** Of each thread: how many samples there are, and how many of them were later than half a second. */
    async function measured() {
      const printed = await (await fetch(`${latchkey.internalUrl}/metrics`)).text();
      const told = Array.from(
        printed.matchAll(new RegExp(`^${name}_count{thread="(\\w+)"}`, "gm")),
        ([, thread]) => thread,
      );
      expect(told).toEqual(threads);
      return threads.map((thread) => {
        const samples = sumMetric(printed, `${name}_count{thread="${thread}"}`);
        return { samples, late: samples - sumMetric(printed, `${name}_bucket{le="0.5",thread="${thread}"}`) };
      });
    }

    // Behind the start, which is work of its own.
    await vi.waitFor(async () => {
      for (const { samples } of await measured()) expect(samples).toBeGreaterThan(10);
    });
    const before = await measured();
    latchkey.kill("SIGSTOP");
    await delay(stoppedMs);
    latchkey.kill("SIGCONT");
    await vi.waitFor(async () => {
      for (const [i, { late }] of (await measured()).entries()) expect(late).toBeGreaterThan(before[i]?.late as number);
    });
  },
);
