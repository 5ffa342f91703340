import { describe, expect, it } from "vitest";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { type RootKeyVerdict, unlimitedRootKey } from "../../src/domain/root-key.ts";
import { ChargeUnknown, Unavailable } from "../../src/domain/unavailable.ts";
import { createRunCall, type Endpoint } from "../../src/rpc/call.ts";
import { nameOf } from "../../src/rpc/endpoints.ts";
import type { ManagementQueueDeps } from "../../src/rpc/management-queue.ts";
import type { Management } from "../../src/store/management.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import type { Caller } from "../../src/usecases/authorise.ts";
import { createKey, findKeptAnswer } from "../support/manage.ts";
import { sumMetric } from "../support/read-metric.ts";

/** Root keys that are known, or whose checks end when the test says so. */
function setUp(known?: CheckRootKey, thread: Partial<ManagementQueueDeps> = {}) {
  const checks: ((verdict: RootKeyVerdict | undefined) => void)[] = [];
  const metrics = createMetrics();
  const checkRootKey = known ?? (() => new Promise((resolve) => checks.push(resolve)));
  const callers: (Caller | undefined)[] = [];
  const log = createLog("error", () => {});
  const runCall = createRunCall({
    clock: systemClock,
    log,
    metrics,
    checkRootKey,
    management: {} as Management,
    ...thread,
  });
  const run = (isPublic: boolean, isManagement = false, other: Partial<Endpoint> = {}, sent: object = {}) => {
    const handle: Endpoint["handle"] = (_, { caller }) => {
      callers.push(caller);
      return {};
    };
    const method = KeysService.method.verifyKey;
    const endpoint: Endpoint = {
      method,
      name: nameOf(method),
      permission: "keys.verify",
      isPublic,
      isManagement,
      isRead: false,
      isIdempotent: false,
      handle,
      ...other,
    };
    const headers = { authorization: "Bearer root-key", ...sent };
    const call = { endpoint, protocol: "json", requestId: "req", headers } as const;
    return runCall({ ...call, remoteAddress: () => "192.0.2.1", read: () => ({}) as never });
  };
  return { run, checks, callers, metrics };
}

describe("a call of a public method", () => {
  it("is answered synchronously and asks nobody about a root key, whatever it presents", () => {
    const { run, checks, callers } = setUp();
    expect(run(true)).toEqual({});
    expect(checks).toEqual([]);
    expect(callers).toEqual([undefined]);
  });

  it("cannot manage keys", async () => {
    const { run } = setUp();
    const managements: Management[] = [];
    const handle: Endpoint["handle"] = (_, { management }) => {
      managements.push(management);
      return {};
    };
    await run(true, false, { handle });
    for (const management of managements) {
      for (const refused of [createKey(management, {} as never), findKeptAnswer(management, "", 0)]) {
        await expect(refused).rejects.toThrow("manages nothing");
      }
    }
    expect(managements.length).toBe(1);
  });
});

describe("a call of a method that needs a root key", () => {
  it("is answered synchronously where it is known what the root key allows", () => {
    const { run, callers } = setUp(() => ({ ...unlimitedRootKey("root"), apiIds: ["api"] }));
    expect(run(false)).toEqual({});
    expect(callers).toMatchObject([{ apiIds: ["api"] }]);
  });

  it.each<[string, Partial<RootKeyVerdict>, string]>([
    ["without its permission", { permissions: ["keys.read"] }, "FORBIDDEN"],
    ["that has expired", { permissions: [], expiresAtMs: 1 }, "UNAUTHORIZED"],
  ])("is refused to a root key %s", (_, allowed, code) => {
    const { run, callers } = setUp(() => ({ ...unlimitedRootKey("root"), ...allowed }));
    expect(() => run(false)).toThrow(expect.objectContaining({ code }));
    expect(callers).toEqual([]);
  });
});

describe("a management call on a thread that verifications keep busy", () => {
  it("waits, and learns only then whether its root key is in force", async () => {
    let isRevoked = false;
    const verdict = () => (isRevoked ? undefined : unlimitedRootKey("root"));
    let nowMs = 0;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    const { run, callers } = setUp(verdict, { clock, utilisation: () => 1 });
    await run(false, true);
    nowMs = 100;
    for (let i = 0; i < 1000; i++) run(true);
    const answered = run(false, true);
    expect(callers).toHaveLength(1001);
    isRevoked = true;
    await expect(answered).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect(callers).toHaveLength(1001);
  });
});

describe("calls whose root keys are checked elsewhere", () => {
  it("wait in a bounded number, because each holds its body; others get 503 and are counted", async () => {
    const { run, checks, callers, metrics } = setUp();
    const waiting = Array.from({ length: 1000 }, () => Promise.resolve(run(false)));
    expect(() => run(false)).toThrow(expect.objectContaining({ code: "SERVICE_UNAVAILABLE" }));
    expect(sumMetric(await metrics.render(), 'latchkey_shed_total{what="call"}')).toBe(1);
    for (const answer of checks.splice(0)) answer(unlimitedRootKey("root"));
    await Promise.all(waiting);
    expect(callers).toHaveLength(1000);

    const refused = run(false);
    checks[0]?.(undefined);
    await expect(refused).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect(callers).toHaveLength(1000);
  });
});

describe("a call that could not be decided may be repeated", () => {
  const lost = new Unavailable("lost");
  const key = { "idempotency-key": "one" };
  it.each<[string, boolean, Unavailable, Partial<Endpoint>, object]>([
    ["if nothing was done", true, new Unavailable("full", { nothingDone: true }), {}, {}],
    ["not if a change may have been made", false, lost, {}, {}],
    ["if it only reads", true, lost, { isRead: true }, {}],
    ["if it carries an idempotency key", true, lost, { isIdempotent: true }, key],
    ["not without one", false, lost, { isIdempotent: true }, {}],
    ["not with one that its method does not honour", false, lost, {}, key],
    ["if it is a verification that was not charged", true, lost, { isManagement: false }, {}],
    ["not if it may have been charged", false, new ChargeUnknown("lost"), { isManagement: false }, key],
  ])("%s", async (_, isRepeatable, error, other, sent) => {
    const { run } = setUp(() => unlimitedRootKey("root"));
    const handle = () => Promise.reject(error);
    await expect(run(false, true, { ...other, handle }, sent)).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      isRepeatable,
    });
  });
});
