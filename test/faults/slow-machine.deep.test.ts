import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { start } from "../e2e/start-workers.ts";
import { engines } from "../support/engines.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { crowd, openConnections } from "../support/open-connections.ts";
import { rawClient } from "../support/raw-client.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { RawSocket } from "./hostile/raw-socket.ts";

/*
 * A fifth of a core, in periods of 100 ms: a process that has work to do runs for 20 ms and stands still for 80. Before
 * deadlines knew of it, up to 19 % of the strict verifications here were 503.
 */
const hierarchies = [
  { root: "/sys/fs/cgroup/cpu", bound: { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000" } },
  { root: "/sys/fs/cgroup", bound: { "cpu.max": "20000 100000" } },
];

/** The folder of a control group with that bound. Undefined where this user or this machine cannot have one. */
function createSlowGroup(): string | undefined {
  for (const { root, bound } of hierarchies) {
    const group = join(root, `latchkey-test-${randomUUID()}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    try {
      // No file is created: where this is a folder like any other there is none.
      for (const [file, text] of Object.entries(bound)) writeFileSync(join(group, file), text, { flag: "r+" });
      return group;
    } catch {
      rmdirSync(group);
    }
  }
  return undefined;
}

/** How many periods the group had work in, and in how many of them it was stopped. */
function periodsOf(group: string): { all: number; stopped: number } {
  const text = readFileSync(join(group, "cpu.stat"), "utf8");
  const read = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
  return { all: read("nr_periods"), stopped: read("nr_throttled") };
}

const probe = createSlowGroup();
if (probe !== undefined) rmdirSync(probe);

const keysMade = 1200;
/** Each is a verification of every key. In between the process has time to spare. */
const bursts = 6;
const burstEveryMs = 3000;

describe.runIf(probe !== undefined).each(engines)("on $name, a process with a fifth of a core", (engine) => {
  it("answers no 503 at a load that it can carry", async () => {
    const { LATCHKEY_USAGE_TIMEOUT_MS: _, ...store } = await engine.environment();
    const latchkey = await startLatchkey({ ...store, LATCHKEY_ROOT_KEY: testRootKey });
    const { keys } = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey });
    const kinds = [{ remaining: 1_000_000 }, { ratelimit: { async: false, limit: 1_000_000, duration: 1000 } }];
    const made: string[] = [];
    while (made.length < keysMade) {
      const some = Array.from({ length: 100 }, (_, i) => keys.createKey({ apiId: "api", ...kinds[i % 2] }));
      made.push(...(await Promise.all(some)).map(({ key }) => key));
    }
    const callers = made.map((key) => new Caller(Number(new URL(latchkey.baseUrl).port), key));
    const verifyAll = () => Promise.all(callers.map((caller) => caller.verify()));
    // While it is fast: its code is compiled by then, and its connections are open.
    for (let round = 0; round < 3; round++) await verifyAll();

    const group = createSlowGroup() as string;
    writeFileSync(join(group, "cgroup.procs"), String(latchkey.pid));
    atTestEnd(async () => {
      latchkey.kill("SIGKILL");
      await latchkey.exited;
      // The kernel may take a moment longer to see that it has gone.
      await vi.waitFor(() => rmdirSync(group));
    });
    const answers: string[] = [];
    for (let burst = 0; burst < bursts; burst++) {
      const pause = delay(burstEveryMs);
      answers.push(...(await verifyAll()));
      await pause;
    }
    const periods = periodsOf(group);
    expect(periods.stopped).toBeGreaterThan(bursts);
    expect(periods.stopped).toBeLessThan(periods.all / 2);
    expect(answers.filter((answer) => !answer.includes('"code":"VALID"'))).toEqual([]);
    expect(answers).toHaveLength(bursts * keysMade);
  });
});

/** An edge gives a call up sooner: at a coordinator it is too old after a second. */
const standstillMs = 1500;

describe("a main process that stands still", () => {
  it.each(engines)("is waited for by its workers, on $name", async (engine) => {
    const latchkey = await start(await engine.environment());
    const { key } = await latchkey.client.createKey({ apiId: "api", remaining: 1000 });
    const callers = openConnections(latchkey.baseUrl, 8);
    await crowd(callers, key, 2);
    latchkey.kill("SIGSTOP");
    const asked = Promise.all(callers.map((verify) => verify(key)));
    await delay(standstillMs);
    latchkey.kill("SIGCONT");
    expect(new Set((await asked).map(({ code }) => code))).toEqual(new Set(["VALID"]));
  });
});

/** By hand, on a connection of its own: other clients would take longer to send a burst than the process to answer it. */
class Caller {
  readonly #socket: RawSocket;
  readonly #request: string;
  #heardBytes = 0;

  constructor(port: number, key: string) {
    this.#socket = new RawSocket(port);
    atTestEnd(() => this.#socket.hangUp());
    const body = JSON.stringify({ key });
    const head = ["POST /v1/keys.verifyKey HTTP/1.1", "host: x", "content-type: application/json"];
    this.#request = [...head, `content-length: ${body.length}`, "", body].join("\r\n");
  }

  async verify(): Promise<string> {
    const before = this.#heardBytes;
    this.#socket.say(this.#request);
    const heard = await this.#socket.hear((bytes) => bytes.length > before && bytes.at(-1) === 0x7d);
    this.#heardBytes = heard.length;
    return heard.slice(before);
  }
}
