import { describe, expect, it } from "vitest";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { type Call, createRunCall, type Endpoint } from "../../src/rpc/call.ts";
import type { RootAccess } from "../../src/store/root-access.ts";
import type { Caller } from "../../src/usecases/authorise.ts";
import { createKey, findKeptAnswer } from "../support/manage.ts";
import { sumMetric } from "../support/read-metric.ts";

/** Root keys whose checks end when the test says so. */
function setUp() {
  const checks: ((isValid: boolean) => void)[] = [];
  const metrics = createMetrics();
  const rootAccess: RootAccess = {
    isRootKey: () => new Promise<boolean>((resolve) => checks.push(resolve)),
    manage: () => ({}) as ReturnType<RootAccess["manage"]>,
  };
  const callers: Caller[] = [];
  const runCall = createRunCall({ clock: systemClock, log: createLog("error", () => {}), metrics, rootAccess });
  const run = (isPublic: boolean) => {
    const handle: Endpoint["handle"] = (_, { caller }) => {
      callers.push(caller);
      return {};
    };
    const endpoint: Endpoint = { method: KeysService.method.verifyKey, permission: "keys.verify", isPublic, handle };
    const headers = { authorization: "Bearer root-key" };
    const call: Call = { endpoint, protocol: "json", requestId: "req", headers, read: () => ({}) as never };
    return runCall(call);
  };
  return { run, checks, callers, metrics };
}

describe("a call of a public method", () => {
  it("is answered synchronously and asks nobody about a root key, whatever it presents", () => {
    const { run, checks, callers } = setUp();
    expect(run(true)).toEqual({});
    expect(checks).toEqual([]);
    expect(callers).toMatchObject([{ rootKey: undefined }]);
  });

  it("cannot manage keys", async () => {
    const { run, callers } = setUp();
    await run(true);
    const { management } = callers[0] as Caller;
    for (const refused of [createKey(management, {} as never), findKeptAnswer(management, "", 0)]) {
      await expect(refused).rejects.toMatchObject({ name: "RootKeyRefused" });
    }
  });
});

describe("calls whose root keys are checked elsewhere", () => {
  it("wait in a bounded number, because each holds its body; others get 503 and are counted", async () => {
    const { run, checks, callers, metrics } = setUp();
    const waiting = Array.from({ length: 1000 }, () => Promise.resolve(run(false)));
    expect(() => run(false)).toThrow(expect.objectContaining({ code: "SERVICE_UNAVAILABLE" }));
    expect(sumMetric(await metrics.render(), 'latchkey_shed_total{what="call"}')).toBe(1);
    for (const answer of checks.splice(0)) answer(true);
    await Promise.all(waiting);
    expect(callers).toHaveLength(1000);

    const refused = run(false);
    checks[0]?.(false);
    await expect(refused).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect(callers).toHaveLength(1000);
  });
});
