import { describe, expect, it } from "vitest";
import { Heartbeat } from "../../src/core/remote/heartbeat.ts";

/** Messages this far apart, one after the other. Answers when the last one came. */
function receive(heartbeat: Heartbeat, gapsMs: readonly number[], fromMs = 1000): number {
  let nowMs = fromMs;
  heartbeat.onMessage(nowMs);
  for (const gapMs of gapsMs) {
    nowMs += gapMs;
    heartbeat.onMessage(nowMs);
  }
  return nowMs;
}

describe("a coordinator's heartbeat", () => {
  it("is silent 250 ms after the next message was to come", () => {
    const heartbeat = new Heartbeat();
    const lastMs = receive(heartbeat, Array(20).fill(50));
    expect([heartbeat.isSilent(lastMs + 300), heartbeat.isSilent(lastMs + 301)]).toEqual([false, true]);
    expect(heartbeat.silentMs(lastMs + 301)).toBe(301);
  });

  it("gets more time from a coordinator that stutters, up to half a second, and less again when it does not", () => {
    const heartbeat = new Heartbeat();
    let lastMs = receive(heartbeat, [50, 50, 200]);
    expect([heartbeat.isSilent(lastMs + 450), heartbeat.isSilent(lastMs + 451)]).toEqual([false, true]);
    lastMs = receive(heartbeat, [10_000], lastMs);
    expect([heartbeat.isSilent(lastMs + 500), heartbeat.isSilent(lastMs + 501)]).toEqual([false, true]);
    lastMs = receive(heartbeat, Array(60).fill(50), lastMs);
    expect(heartbeat.isSilent(lastMs + 301)).toBe(true);
  });

  it("is not silent before its first message, nor after a new start", () => {
    const heartbeat = new Heartbeat();
    expect(heartbeat.isSilent(1e6)).toBe(false);
    receive(heartbeat, [50]);
    heartbeat.reset();
    expect(heartbeat.isSilent(1e9)).toBe(false);
  });
});
