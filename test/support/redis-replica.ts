import { vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { WindowNews } from "../../src/domain/shared-window.ts";
import { RedisChanges } from "../../src/ratelimit/redis/redis-changes.ts";
import { RedisWindowHub } from "../../src/ratelimit/redis/redis-window-hub.ts";
import type { Change } from "../../src/store/changes.ts";
import { redisAccess } from "./redis-access.ts";
import { atTestEnd } from "./test-end.ts";

/** Bounds a wait for something that comes by itself. */
export const soon = { timeout: 60_000, interval: 10 };
const durationMs = 2_000_000;

/** The parts of a replica that use Redis: windows and changes. Closed with the test. */
export class RedisReplica {
  readonly name: string;
  readonly hub: RedisWindowHub;
  readonly changes: RedisChanges;
  readonly heard: Change[] = [];
  /** What was logged of windows, and of changes: the message and, after a colon, the reason. */
  readonly logged = { windows: [] as string[], changes: [] as string[] };
  readonly logText: string[] = [];

  constructor(url: string, name: string, ca?: string) {
    const access = redisAccess(url, ca);
    this.name = name;
    this.hub = new RedisWindowHub({ access, random: createSystemRandom(), log: this.#logTo(this.logged.windows) });
    this.changes = new RedisChanges({
      access,
      replica: name,
      clock: systemClock,
      log: this.#logTo(this.logged.changes),
      metrics: createMetrics(),
      onChange: (change) => this.heard.push(change),
    });
    atTestEnd(() => {
      this.hub.close();
      this.changes.close();
    });
  }

  /** Waits until everything works, or nothing. */
  async isUp(wanted: boolean): Promise<void> {
    await vi.waitFor(() => {
      if (this.hub.isWhole !== wanted || this.changes.isUp !== wanted) throw new Error(`still not ${wanted}`);
    }, soon);
  }

  /** Reports that so many of each key's window have passed, all in one exchange. */
  async tell(count: number, ...keyIds: string[]): Promise<readonly (WindowNews | undefined)[]> {
    const report = { replica: this.name, gen: 1, count, endsInMs: durationMs, durationMs, previousGen: 0 };
    return (await this.hub.exchange(keyIds.map((subject) => ({ subject, report })))).news;
  }

  #logTo(lines: string[]) {
    return createLog("debug", (line) => {
      const { msg, reason } = JSON.parse(line);
      lines.push(reason === undefined ? msg : `${msg}: ${reason}`);
      this.logText.push(line);
    });
  }
}
