import { describe, expect, it } from "vitest";
import {
  lookupDeadlineMs,
  lookupQueuedMs,
  lookupStatementMs,
  RoundTrip,
} from "../../../src/store/postgres/round-trip.ts";

describe("RoundTrip", () => {
  it("is the lowest time of a reply, whatever else the server did meanwhile", () => {
    const roundTrip = new RoundTrip();
    expect(roundTrip.ms).toBe(0);
    for (const [nowMs, tookMs] of [300, 42, 180].entries()) roundTrip.onReply(tookMs, nowMs);
    expect(roundTrip.ms).toBe(42);
  });

  it("follows a path that becomes longer, and keeps the last one while nothing is asked", () => {
    const roundTrip = new RoundTrip();
    roundTrip.onReply(1, 0);
    for (let nowMs = 11_000; nowMs <= 33_000; nowMs += 1000) roundTrip.onReply(80, nowMs);
    expect(roundTrip.ms).toBe(80);
    roundTrip.onReply(90, 3_600_000);
    expect(roundTrip.ms).toBe(80);
  });
});

describe("the time-outs of a look-up", () => {
  it.each([0, 1, 40, 80, 160, 250, 300, 500])("at %i ms add up to no more than its deadline", (roundTripMs) => {
    const deadlineMs = lookupDeadlineMs(roundTripMs);
    expect(deadlineMs).toBe(Math.max(500, 1.5 * roundTripMs + 100));
    expect(lookupQueuedMs(roundTripMs) + lookupStatementMs(roundTripMs)).toBeLessThanOrEqual(deadlineMs);
    expect(lookupStatementMs(roundTripMs)).toBeGreaterThan(roundTripMs);
    // One that just missed a statement waits for its reply first.
    if (roundTripMs <= 160) expect(lookupQueuedMs(roundTripMs)).toBeGreaterThan(1.4 * roundTripMs);
  });
});
