import { expect } from "vitest";
import { InvalidRequest } from "../../../src/rpc/invalid-request.ts";

/** A value that must never come back in an error. */
export const CANARY = "canary-7f3a";
/** A key: it could be the name of a field as far as its characters go. */
export const KEY = "acme_2AsTXY7ZPJon57xXlwg1iFScToYBEIkW74QinwK";

/** The largest body the service takes. */
export const BODY_MAX_BYTES = 64 * 1024;

/** The result of `run`, or the InvalidRequest that it throws. Any other error fails the test. */
export function outcomeOf<T>(run: () => T): T | InvalidRequest {
  try {
    return run();
  } catch (error) {
    if (error instanceof InvalidRequest) return error;
    throw error;
  }
}

export function refusalOf(run: () => unknown): InvalidRequest {
  const outcome = outcomeOf(run);
  if (outcome instanceof InvalidRequest) return outcome;
  return expect.fail("was accepted");
}

/** The violation as a text, as the tables of these tests write it. A request as a whole has no path. */
export function told({ message }: InvalidRequest): string {
  return message.replace(/(^|; )the request /g, "$1");
}

/** A guard against quadratic time, far above what linear time takes. By the processor's time: the machine may be busy. */
export function expectWithinDeadline(run: () => unknown): void {
  const start = process.threadCpuUsage();
  run();
  expect(process.threadCpuUsage(start).user / 1000).toBeLessThan(1_000);
}
