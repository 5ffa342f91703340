import { describe, expect, it, vi } from "vitest";
import { NotExecuted } from "../../src/core/wire.ts";
import { askFor } from "../ratelimit/strict/asks.ts";
import { ones } from "../support/ones.ts";
import { TestClock } from "../support/test-clock.ts";
import { exchange, granting, setUpLink } from "./link-fixture.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import { edgeAt } from "./test-coordinator.ts";

describe("a link to a coordinator, knowing its peer,", () => {
  it("echoes the coordinator's time and its age, first of all in an empty message", async () => {
    const clock = new TestClock();
    const { coordinator, link, recalls } = await setUpLink({ clock });
    await vi.waitFor(() => expect(coordinator.greetings).toMatchObject([{ seenAgeMs: 0 }]));
    coordinator.beats = false;
    coordinator.say({ timeMs: 4711, recalls: ["heard"] });
    await vi.waitFor(() => expect(recalls).toEqual(["heard"]));
    clock.advance(100);
    void exchange(link, "k", askFor({ waiting: ones(1) })).catch(() => {});
    await vi.waitFor(() => expect(coordinator.requests.length).toBe(1));
    const { seenTimeMs = 0, seenAgeMs = 0 } = coordinator.requests[0] ?? {};
    expect([seenTimeMs, seenAgeMs]).toEqual([4711, 100]);
  });

  it("that is silent takes no new calls and says so of those under way, and still takes a late answer", async () => {
    const clock = new TestClock();
    const { coordinator, link, recalls } = await setUpLink({ clock });
    let overdue = 0;
    const late = exchange(link, "k", askFor({ waiting: ones(1) }), () => overdue++);
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.beats = false;
    coordinator.say({ recalls: ["last"] });
    await vi.waitFor(() => expect(recalls).toEqual(["last"]));
    clock.advance(600);
    await vi.waitFor(() => expect(link.isUp).toBe(false), { interval: 5 });
    expect(overdue).toBe(1);
    await expect(exchange(link, "k", askFor({ returned: 1 }))).rejects.toThrow(NotExecuted);
    coordinator.say({ answers: [granting(coordinator.asks[0]?.id ?? 0, 5)] });
    expect(await late).toMatchObject({ granted: 5 });
    expect([link.isUp, coordinator.streams, coordinator.asks.length]).toEqual([true, 1, 1]);
  });

  it("whose coordinator has no ledger takes no asks, and goes on with reports", async () => {
    const coordinator = await ScriptedCoordinator.start();
    // By a clock that stands still the coordinator is never silent, however busy the machine is.
    const { core, permits } = edgeAt([coordinator.address], { clock: new TestClock() });
    await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(true));
    let overdue = 0;
    const late = permits.exchange("k", askFor({ waiting: ones(1) }), { onOverdue: () => overdue++ });
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.state = { ledgerAway: true };
    await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(false));
    expect([core.coordinators.isUp, overdue]).toEqual([true, 1]);
    expect(await permits.exchange("k", askFor({ returned: 1 }))).toEqual({ outcome: "notExecuted" });
    const report = core.windows.exchange([]);
    report.catch(() => {});
    await vi.waitFor(() => expect(coordinator.calls.length).toBe(2));
    const { id = 0, question } = coordinator.calls[1] ?? {};
    expect(question?.case).toBe("windows");
    coordinator.state = {};
    const windows = { case: "windows" as const, value: { epoch: "e" } };
    coordinator.say({ answers: [{ id, answer: windows }, granting(coordinator.asks[0]?.id ?? 0, 2)] });
    expect(await report).toMatchObject({ epoch: "e" });
    expect(await late).toMatchObject({ granted: 2 });
    expect(core.coordinators.hasLedger).toBe(true);
  });

  it("whose coordinator stops takes no calls, waits for its answers and then ends the stream", async () => {
    const { coordinator, link, recalls } = await setUpLink({ clock: new TestClock() });
    const last = exchange(link, "k", askFor({ waiting: ones(1) }));
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.state = { stopping: true };
    await vi.waitFor(() => expect(link.isUp).toBe(false));
    await expect(exchange(link, "k", askFor({ returned: 1 }))).rejects.toThrow(NotExecuted);
    coordinator.say({ recalls: ["still there"] });
    await vi.waitFor(() => expect(recalls).toEqual(["still there"]));
    expect([coordinator.ends, coordinator.streams]).toEqual([0, 1]);
    coordinator.say({ answers: [granting(coordinator.asks[0]?.id ?? 0, 3)] });
    expect(await last).toMatchObject({ granted: 3 });
    await vi.waitFor(() => expect(coordinator.ends).toBe(1));
  });
});
