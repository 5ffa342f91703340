import { describe, expect, it, onTestFinished, vi } from "vitest";
import { LedgerProbe } from "../../src/core/serve/ledger-probe.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { PermitResult, SubjectAsk } from "../../src/store/permit-ledger.ts";
import { TestClock } from "../support/test-clock.ts";

/** A ledger with two lanes that answers as the test says. */
function setUp(first: "answers" | "fails" | "hangs" = "answers") {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const clock = new TestClock();
  const ledger = { does: first, asked: 0 };
  const exchange = (_: readonly SubjectAsk[]): Promise<readonly PermitResult[]> => {
    ledger.asked++;
    if (ledger.does === "hangs") return new Promise(() => {});
    return ledger.does === "fails" ? Promise.reject(new Unavailable("away")) : Promise.resolve([]);
  };
  const probe = new LedgerProbe([{ exchange }, { exchange }], clock);
  onTestFinished(() => probe.stop());
  const pass = async (ms: number) => {
    for (let gone = 0; gone < ms; gone += 10) {
      clock.advance(10);
      await vi.advanceTimersByTimeAsync(10);
    }
  };
  return { probe, ledger, pass };
}

describe("a coordinator's ledger", () => {
  it("counts as away until it has answered, and is found by probes alone", async () => {
    const { probe, ledger, pass } = setUp("fails");
    expect(probe.isAway).toBe(true);
    await pass(1000);
    expect(probe.isAway).toBe(true);
    ledger.does = "answers";
    await pass(260);
    expect(probe.isAway).toBe(false);
  });

  it.each(["fails", "hangs"] as const)("is away within 0.7 s if it %s, without any ask", async (does) => {
    const { probe, ledger, pass } = setUp();
    await pass(1000);
    expect(probe.isAway).toBe(false);
    ledger.does = does;
    await pass(670);
    expect(probe.isAway).toBe(true);
  });

  it("is probed at once when it fails an ask: away if it fails that too, and back with the next answer", async () => {
    const { probe, ledger, pass } = setUp();
    await pass(10);
    ledger.does = "fails";
    await expect(probe.engines[1]?.exchange([])).rejects.toThrow("away");
    await pass(10);
    expect(probe.isAway).toBe(true);
    ledger.does = "answers";
    await probe.engines[0]?.exchange([]);
    expect(probe.isAway).toBe(false);
  });

  it("is not away because of one ask that fails", async () => {
    const { probe, ledger, pass } = setUp();
    await pass(10);
    ledger.does = "fails";
    const failing = probe.engines[1]?.exchange([]);
    ledger.does = "answers";
    await expect(failing).rejects.toThrow("away");
    await pass(10);
    expect([probe.isAway, ledger.asked]).toEqual([false, 2 + 1 + 1]);
  });

  it("is not probed while it answers asks", async () => {
    const { probe, ledger, pass } = setUp();
    await pass(10);
    for (let i = 0; i < 20; i++) {
      await probe.engines[0]?.exchange([]);
      await pass(100);
    }
    expect(ledger.asked).toBe(2 + 20);
  });
});
