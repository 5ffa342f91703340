import { setTimeout as delay } from "node:timers/promises";
import type { KeysClient } from "../../../src/sdk/index.ts";
import { createSurely } from "../create-surely.ts";
import type { LatchkeyProcess } from "../latchkey-process.ts";
import { rawClient } from "../raw-client.ts";
import { readMetric } from "../read-metric.ts";
import { settles } from "../settles.ts";
import { testRootKey } from "../test-root-key.ts";

/** Callers at the same time where many keys are asked for. */
const together = 32;
/** However busy the machine is. */
const settledMs = 60_000;

export function clientOfFront({ baseUrl }: LatchkeyProcess): KeysClient {
  return rawClient({ baseUrl, rootKey: testRootKey }).keys;
}

function metricOf({ internalUrl }: LatchkeyProcess, name: string): Promise<number> {
  return readMetric(Number(new URL(internalUrl).port), name);
}

/** Verifications that were not answered from memory. */
export function lookupsOf(front: LatchkeyProcess): Promise<number> {
  return metricOf(front, 'latchkey_key_cache_total{event="miss"}');
}

/** How long it takes until the front says so of its change feed. */
export function feedSettles(front: LatchkeyProcess, up: 0 | 1): Promise<number> {
  return settles(() => metricOf(front, "latchkey_change_feed_up"), up, settledMs);
}

/** How often the front has logged this. */
export function said(front: LatchkeyProcess, message: string): number {
  return front.stderr().split(`"msg":"${message}"`).length - 1;
}

/** The code of a verification; "503" where the service could not decide. */
export function codeOf(client: KeysClient, key: string): Promise<string> {
  return client.verifyKey({ key }).then(
    ({ code }) => code as string,
    (error: { status?: number }) => String(error.status ?? error),
  );
}

export async function createSecrets(client: KeysClient, count: number): Promise<string[]> {
  const secrets: string[] = [];
  await inParallel(count, async () => void secrets.push((await createSurely(client, { apiId: "api" })).key));
  return secrets;
}

/** Verifies each once, and answers how often there was which code. */
export async function verifyEach(client: KeysClient, secrets: readonly string[]): Promise<Record<string, number>> {
  const codes = new Codes();
  await inParallel(secrets.length, async (at) => codes.add(await codeOf(client, secrets[at] as string)));
  return codes.counts;
}

/** Verifies keys in turn, without a break, while `act` runs, and answers how often there was which code. */
export async function verifyDuring(
  client: KeysClient,
  nextSecret: () => string,
  act: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const codes = new Codes();
  let isOver = false;
  const verifyOn = async () => {
    while (!isOver) {
      codes.add(await codeOf(client, nextSecret()));
      await delay(5);
    }
  };
  const verifying = verifyOn();
  try {
    await act();
  } finally {
    isOver = true;
    await verifying;
  }
  return codes.counts;
}

class Codes {
  readonly counts: Record<string, number> = {};

  add(code: string): void {
    this.counts[code] = (this.counts[code] ?? 0) + 1;
  }
}

async function inParallel(count: number, act: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: together }, work));
}
