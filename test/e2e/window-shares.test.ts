import { describe, expect, it } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { start } from "./start-workers.ts";

const windowsMax = 20;
const duration = 3_600_000;

interface Server {
  readonly baseUrl: string;
  readonly internalPort: number;
}

type Outcome = "served" | "full";

/** Uses keys of one API, or free-standing limits that name it, each with a window of its own. */
function tenantOf({ baseUrl, internalPort }: Server, apiId: string, async: boolean) {
  const { keys, ratelimits } = rawClient({ baseUrl, rootKey: testRootKey });
  const rule = { limit: 10, duration, async };
  const timesFull = () => readMetric(internalPort, "latchkey_rate_limit_windows_full_total");
  /** A slow machine answers 503 for other reasons too: then it is asked again. */
  const outcomeOf = async (call: () => Promise<unknown>): Promise<Outcome> => {
    for (;;) {
      const before = await timesFull();
      try {
        await call();
        return "served";
      } catch (error) {
        expect(error).toMatchObject({ status: 503 });
        if ((await timesFull()) > before) return "full";
      }
    }
  };
  return {
    /** What becomes of one verification of each of so many new keys. */
    async useKeys(count: number): Promise<Outcome[]> {
      const outcomes: Outcome[] = [];
      for (let i = 0; i < count; i++) {
        const { key } = await keys.createKey({ apiId, ratelimit: rule });
        outcomes.push(await outcomeOf(() => keys.verifyKey({ key })));
      }
      return outcomes;
    },
    async useIdentifiers(count: number): Promise<Outcome[]> {
      const outcomes: Outcome[] = [];
      for (let i = 0; i < count; i++) {
        const limit = { namespace: "n", identifier: `${i}`, apiId, ...rule };
        outcomes.push(await outcomeOf(() => ratelimits.limit(limit)));
      }
      return outcomes;
    },
  };
}

/** Of twenty. */
const nineTenths: readonly Outcome[] = [...Array<Outcome>(18).fill("served"), "full", "full"];

describe.each([
  ["local", true],
  ["strict", false],
])("windows of %s limits", (_, async) => {
  it("cannot all be taken by one API: the last tenth is for APIs that hold little", async () => {
    const server = await startTestServer({ settings: { windowsMax, freeWindowsMax: windowsMax } });
    const [big, small] = [tenantOf(server, "big", async), tenantOf(server, "small", async)];
    expect(await big.useKeys(20)).toEqual(nineTenths);
    expect(await small.useKeys(3)).toEqual(["served", "served", "full"]);
    expect(await big.useIdentifiers(20)).toEqual(nineTenths);
    expect(await small.useIdentifiers(3)).toEqual(["served", "served", "full"]);
    expect(server.logLines.join("")).toContain('no rate-limit window is free for the API \\"big\\"');
  });

  it("cannot all be taken by one API in a process with workers", async () => {
    const settings = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_WINDOWS_MAX: `${windowsMax}` };
    const { baseUrl, internalUrl } = await start(settings);
    const server = { baseUrl, internalPort: Number(new URL(internalUrl).port) };
    expect(await tenantOf(server, "big", async).useKeys(20)).toEqual(nineTenths);
    expect(await tenantOf(server, "small", async).useKeys(3)).toEqual(["served", "served", "full"]);
  });
});

describe("windows of local limits", () => {
  it("count for their API after a restart", async () => {
    const settings = { windowsMax, dataDir: tempFolder() };
    const before = await startTestServer({ settings });
    expect(await tenantOf(before, "big", true).useKeys(20)).toEqual(nineTenths);
    await before.stop();
    const after = await startTestServer({ settings });
    expect(await tenantOf(after, "big", true).useKeys(1)).toEqual(["full"]);
    expect(await tenantOf(after, "small", true).useKeys(3)).toEqual(["served", "served", "full"]);
  });
});
