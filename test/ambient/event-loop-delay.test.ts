import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EventLoopDelay, measureEventLoopDelay } from "../../src/ambient/event-loop-delay.ts";
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
    const stop = measureEventLoopDelay("7", metrics, new EventLoopDelay(() => clock.monotonicMs()));
    for (const ms of [20, 19, 320]) fireAfter(ms);
    stop();
    fireAfter(1000);
    const printed = await metrics.render();
    expect(sumMetric(printed, `${name}_count{worker="7"}`)).toBe(3);
    expect(sumMetric(printed, `${name}_sum{worker="7"}`)).toBeCloseTo(0.3);
    expect(sumMetric(printed, `${name}_bucket{le="0.0025",worker="7"}`)).toBe(2);
    expect(sumMetric(printed, `${name}_bucket{le="0.25",worker="7"}`)).toBe(2);
    expect(sumMetric(printed, `${name}_bucket{le="0.5",worker="7"}`)).toBe(3);
  });

  it("is added up, with that of a tick that is due, for as long as it is measured", () => {
    const delay = new EventLoopDelay(() => clock.monotonicMs());
    expect(delay.totalMs).toBe(0);
    const stop = delay.start(() => {});
    fireAfter(120);
    fireAfter(20);
    expect(delay.totalMs).toBe(100);
    clock.advance(50);
    expect(delay.totalMs).toBe(130);
    fireAfter(0);
    expect(delay.totalMs).toBe(130);
    stop();
    clock.advance(1000);
    expect(delay.totalMs).toBe(130);
    const stopAgain = delay.start(() => {});
    expect(delay.totalMs).toBe(130);
    stopAgain();
  });

  it("counts once if two servers of a thread measure it", () => {
    const delay = new EventLoopDelay(() => clock.monotonicMs());
    const stops = [delay.start(() => {}), delay.start(() => {})];
    fireAfter(120);
    expect(delay.totalMs).toBe(100);
    stops[0]?.();
    fireAfter(70);
    expect(delay.totalMs).toBe(150);
    stops[1]?.();
  });
});
