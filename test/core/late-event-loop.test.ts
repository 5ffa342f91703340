import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { TestClock } from "../support/test-clock.ts";
import { countedKey, edgeAt, startTestCoordinator } from "./test-coordinator.ts";

/** Longer than an edge that is near its coordinator waits for an answer, by the timers of the system. */
const timersFireMs = 600;

async function setUp() {
  const coordinator = await startTestCoordinator();
  const keyId = await countedKey(coordinator.store, 10);
  const clock = new TestClock();
  const { core } = edgeAt([coordinator.address], { clock });
  await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(true), { timeout: 60_000 });
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  coordinator.ledger.delay = () => answered;
  const spending = core.usage.spend([keyId], 1);
  spending.catch(() => {});
  await vi.waitFor(() => expect(coordinator.charged).toHaveLength(1), { timeout: 60_000 });
  return { clock, answer, spending };
}

describe("an answer of a coordinator", () => {
  it("is waited for longer if the edge's own event loop was late", async () => {
    const { clock, answer, spending } = await setUp();
    clock.advanceLate(1000);
    await delay(timersFireMs);
    answer();
    expect(await spending).toMatchObject({ remaining: 9 });
  });

  it("counts as lost after the usual time if it was not", async () => {
    const { clock, spending } = await setUp();
    clock.advance(500);
    await expect(spending).rejects.toThrow("the charge was not answered in time");
  });
});
