import { readFileSync } from "node:fs";

/** Of the time in which processes wanted to run since this was called, the share that the machine got from its host. */
export function watchProcessors(): { share(): number } {
  const before = read();
  return {
    share() {
      const now = read();
      const busy = now.busy - before.busy;
      const stolen = now.stolen - before.stolen;
      // After less than a tick nothing is known.
      return busy <= 0 ? 1 : busy / (busy + stolen);
    },
  };
}

/** In ticks, of all processors together. */
function read(): { busy: number; stolen: number } {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] =
    readFileSync("/proc/stat", "utf8").split("\n", 1)[0]?.split(/\s+/).map(Number) ?? [];
  return { busy: user + nice + system + irq + softirq, stolen };
}
