import { systemClock } from "../ambient/clock.ts";

/** Shows how far long work is. */
export interface Progress {
  update(what: string, done: number, total: number): void;
  /** Leaves an unfinished bar behind, so that what is printed next has a line of its own. */
  end(): void;
}

/** Between two lines about one thing, and between two drawings of a bar. */
const lineEveryMs = 1000;
const drawEveryMs = 100;
const barLength = 30;

/**
 * On a terminal a bar that is drawn again and again. Elsewhere lines such as `keys: 12000 of 1000000`: one a second at
 * most, and one when a thing is complete.
 */
export function createProgress(stream: NodeJS.WriteStream): Progress {
  const everyMs = stream.isTTY ? drawEveryMs : lineEveryMs;
  let writtenMs = Number.NEGATIVE_INFINITY;
  let isOpen = false;
  return {
    update(what, done, total) {
      const nowMs = systemClock.monotonicMs();
      if (done < total && nowMs - writtenMs < everyMs) return;
      writtenMs = nowMs;
      if (!stream.isTTY) {
        stream.write(`${what}: ${done} of ${total}\n`);
        return;
      }
      isOpen = done < total;
      stream.write(`\r\u001b[K${barOf(what, done, total)}${isOpen ? "" : "\n"}`);
    },
    end() {
      if (isOpen) stream.write("\n");
      isOpen = false;
    },
  };
}

function barOf(what: string, done: number, total: number): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.floor(part * barLength);
  const percent = `${Math.floor(part * 100)}%`.padStart(4);
  return `${what.padEnd(16)} ${"█".repeat(filled)}${"░".repeat(barLength - filled)} ${percent}  ${done} of ${total}`;
}
