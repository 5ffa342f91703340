import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { measureEventLoopDelay } from "../../src/ambient/event-loop-delay.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { sumMetric } from "../support/read-metric.ts";
import { TestClock } from "../support/test-clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the delay of an event loop", () => {
  const name = "latchkey_event_loop_delay_seconds";
  const clock = new TestClock();

  /** The timer fires this long after the one before. */
  function fireAfter(ms: number) {
    clock.advance(ms);
    vi.advanceTimersByTime(20);
  }

  it("is how much later than it should a timer fires, and never negative", async () => {
    const metrics = createMetrics();
    const stop = measureEventLoopDelay("7", { clock, metrics });
    for (const ms of [20, 19, 320]) fireAfter(ms);
    stop();
    fireAfter(1000);
    const printed = await metrics.render();
    expect(sumMetric(printed, `${name}_count{thread="7"}`)).toBe(3);
    expect(sumMetric(printed, `${name}_sum{thread="7"}`)).toBeCloseTo(0.3);
    expect(sumMetric(printed, `${name}_bucket{le="0.0025",thread="7"}`)).toBe(2);
    expect(sumMetric(printed, `${name}_bucket{le="0.25",thread="7"}`)).toBe(2);
    expect(sumMetric(printed, `${name}_bucket{le="0.5",thread="7"}`)).toBe(3);
  });
});
