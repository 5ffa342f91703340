import type { Clock } from "../../src/ambient/clock.ts";

/** A clock that stands still until it is told otherwise. Wall time can step; monotonic time only goes on. */
export class TestClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #lateMs = 0;

  constructor(wallMs: number | string = "2026-01-15T12:00:00Z") {
    this.#wallMs = new Date(wallMs).getTime();
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  lateMs(): number {
    return this.#lateMs;
  }

  /** Time in which the event loop stands still. */
  advanceLate(ms: number): void {
    this.advance(ms);
    this.#lateMs += ms;
  }

  advance(ms: number): void {
    this.#wallMs += ms;
    this.#monotonicMs += ms;
  }

  /** Sets the wall clock. The monotonic one goes on. */
  stepTo(wallMs: number | string): void {
    this.#wallMs = new Date(wallMs).getTime();
  }
}
