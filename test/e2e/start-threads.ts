import { expect } from "vitest";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { testRootKey } from "../support/test-root-key.ts";

export const threads = 2;
export const connections = 24;

/** However busy the machine is, uses are decided. */
const LATCHKEY_USAGE_TIMEOUT_MS = "20000";

export async function start(environment: Record<string, string>) {
  const own = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_WORKERS: String(threads), LATCHKEY_USAGE_TIMEOUT_MS };
  const latchkey = await startLatchkey({ ...own, ...environment });
  const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
  return { ...latchkey, client };
}

export function metric({ internalUrl }: LatchkeyProcess, name: string): Promise<number> {
  return readMetric(Number(new URL(internalUrl).port), name);
}

/** With one thread that has all connections, none of these tests would show anything. */
export async function expectAllServe(latchkey: LatchkeyProcess): Promise<void> {
  for (let thread = 1; thread <= threads; thread++) {
    expect(await metric(latchkey, `latchkey_thread_connections{thread="${thread}"}`)).toBeGreaterThan(0);
  }
}
