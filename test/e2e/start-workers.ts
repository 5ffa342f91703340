import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { testRootKey } from "../support/test-root-key.ts";

export const workers = 2;
export const connections = 24;

/** However busy the machine is, uses are decided. */
const LATCHKEY_USAGE_TIMEOUT_MS = "20000";

export async function start(environment: Record<string, string>) {
  const own = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_WORKERS: String(workers), LATCHKEY_USAGE_TIMEOUT_MS };
  const latchkey = await startLatchkey({ ...own, ...environment });
  const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
  return { ...latchkey, client };
}

export function metric({ internalUrl }: LatchkeyProcess, name: string): Promise<number> {
  return readMetric(Number(new URL(internalUrl).port), name);
}

/** With one worker that has all connections, none of these tests would show anything. */
export async function expectAllServe(latchkey: LatchkeyProcess): Promise<void> {
  for (let worker = 1; worker <= workers; worker++) {
    expect(await metric(latchkey, `latchkey_worker_connections{worker="${worker}"}`)).toBeGreaterThan(0);
  }
}

/** The processes of its workers, by their numbers. */
export function pidsOfWorkers({ pid }: LatchkeyProcess): Map<number, number> {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  const named = children.map((child) => [readFileSync(`/proc/${child}/cmdline`, "utf8"), Number(child)] as const);
  return new Map(
    named.map(([line, child]) => [Number(/worker-(\d+)/.exec(line.split("\0").at(-2) ?? "")?.[1]), child]),
  );
}
