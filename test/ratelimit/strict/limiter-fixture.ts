import { onTestFinished, vi } from "vitest";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { RateLimit } from "../../../src/domain/rate-limit.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import type { Permit } from "../../../src/ratelimit/limiter.ts";
import { StrictLimiter } from "../../../src/ratelimit/strict/strict-limiter.ts";
import { TestClock } from "../../support/test-clock.ts";
import { HeldChannel } from "./held-channel.ts";

export const rule: RateLimit = { mode: "strict", limit: 10_000, durationMs: 60_000 };
export const timeoutMs = 450;
const tickMs = 5;

/** A limiter whose ledger and whose time are in the test's hands. */
export function setUpLimiter({ poolsMax = 1000, waitingRoom = new WaitingRoom(1000) } = {}) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const channel = new HeldChannel();
  const clock = new TestClock();
  const alarms = { full: 0, unsettled: 0 };
  const metrics = {
    ...createMetrics(),
    windowsFull: () => void alarms.full++,
    deniedUnsettled(count = 1) {
      alarms.unsettled += count;
    },
  };
  const limiter = new StrictLimiter({
    channel,
    clock,
    metrics,
    freeStandingMax: 1000,
    poolsMax,
    timeoutMs: () => timeoutMs,
    waitingRoom,
  });
  /** Time goes on in steps of a tick, as it does. */
  const pass = async (ms: number) => {
    for (let gone = 0; gone < ms; gone += tickMs) {
      clock.advance(tickMs);
      await vi.advanceTimersByTimeAsync(tickMs);
    }
  };
  return { limiter, channel, clock, alarms, pass };
}

/** A request that has to wait, and its outcome as a text. */
export function queue(limiter: StrictLimiter, subject = "k", cost = 1) {
  const waiting = { said: "waits", permit: undefined as Permit | undefined };
  const taken = limiter.take(subject, rule, cost);
  if (!(taken instanceof Promise)) throw new Error(`did not wait: ${taken.outcome}`);
  taken.then(
    (permit) => {
      waiting.said = permit.outcome;
      waiting.permit = permit;
    },
    (error: Error) => {
      waiting.said = error.message;
    },
  );
  return waiting;
}

/** One that must not have to wait. */
export function takeNow(limiter: StrictLimiter, subject = "k", cost = 1): Permit {
  const taken = limiter.take(subject, rule, cost);
  if (taken instanceof Promise) throw new Error("has to wait");
  return taken;
}
