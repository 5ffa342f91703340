import { describe, expect, it } from "vitest";
import { ClockJumps } from "../../src/domain/clock-jumps.ts";

const epochMs = 1_700_000_000_000;
const hourMs = 3_600_000;

/** A replica whose ledger shows `aheadMs` more than it should. Answers take 2 ms unless another time is given. */
class Replica {
  aheadMs = 0;
  sleptMs = 0;
  monotonicMs = 1000;
  readonly #jumps = new ClockJumps(() => this.sleptMs);

  /** Asks after `afterMs`, and returns the noticed jump. The clock is read at some moment before the answer. */
  ask(afterMs: number, { tookMs = 2, readAt = 0.5 } = {}): number {
    const sentAtMs = this.monotonicMs + afterMs;
    this.monotonicMs = sentAtMs + tookMs;
    const trueMs = epochMs + sentAtMs + this.sleptMs + tookMs * readAt;
    return this.#jumps.detect({
      ledgerMs: Math.floor(trueMs + this.aheadMs),
      sentAtMs,
      receivedAtMs: this.monotonicMs,
    });
  }
}

describe("jumps of a clock elsewhere", () => {
  it.each([6000, 60_000, hourMs, -6000, -hourMs])("by %i ms are noticed once, with their size", (byMs) => {
    const replica = new Replica();
    expect(replica.ask(0)).toBe(0);
    expect(replica.ask(20)).toBe(0);
    replica.aheadMs += byMs;
    const noticed = replica.ask(20);
    expect(Math.abs(noticed - byMs)).toBeLessThan(10);
    expect([replica.ask(20), replica.ask(5000)]).toEqual([0, 0]);
    replica.aheadMs -= byMs;
    expect(Math.abs(replica.ask(20) + byMs)).toBeLessThan(10);
  });

  it.each([4900, -4900])("by %i ms are none", (byMs) => {
    const replica = new Replica();
    replica.ask(0);
    replica.aheadMs += byMs;
    expect([replica.ask(20), replica.ask(20)]).toEqual([0, 0]);
  });

  it("are no clocks that run a little apart, however long nothing was asked", () => {
    const replica = new Replica();
    replica.ask(0);
    for (let i = 0; i < 50; i++) {
      replica.aheadMs -= 0.0004 * 10 * hourMs;
      expect(replica.ask(10 * hourMs)).toBe(0);
    }
  });

  it.each([0, 1])("are no answers that came late, as those of a process that was stopped do", (readAt) => {
    const replica = new Replica();
    replica.ask(0);
    expect(replica.ask(20, { tookMs: 600_000, readAt })).toBe(0);
    expect(replica.ask(20)).toBe(0);
    // Nothing is forgotten over it: a jump in that time is noticed with the next answer in time.
    replica.ask(20, { tookMs: 600_000, readAt });
    replica.aheadMs -= hourMs;
    expect(Math.abs(replica.ask(20) + hourMs)).toBeLessThan(10);
  });

  it("are no sleep of this machine, in which its monotonic clock stood still; a jump beside it is", () => {
    const replica = new Replica();
    replica.ask(0);
    replica.sleptMs += hourMs;
    expect([replica.ask(20), replica.ask(20)]).toEqual([0, 0]);
    replica.sleptMs += hourMs;
    replica.aheadMs += 7000;
    expect(Math.abs(replica.ask(20) - 7000)).toBeLessThan(10);
    replica.sleptMs += hourMs;
    replica.aheadMs -= 2 * hourMs;
    expect(replica.ask(20)).toBeLessThan(-5000);
  });
});
