import { setTimeout as delay } from "node:timers/promises";
import type { KeysClient } from "../../../src/sdk/index.ts";
import type { LatchkeyProcess } from "../latchkey-process.ts";
import { rememberKey } from "../remember-key.ts";
import { clientOfFront, codeOf } from "./fronts.ts";

/** It is watched for so much longer than the deletion may take, on a busy machine too. */
const afterMs = 500;
/** After the last front has refused the key, it is asked for as long as this: no front may take it for valid again. */
const goneMs = 500;

/**
 * Uses a key on every front without a break, deletes it on the first, and answers how long after the deletion was answered
 * each of them last called it valid, by the time of that answer; below 0: never. `then` is done right after the deletion.
 */
export async function lastValidMs(
  fronts: readonly LatchkeyProcess[],
  withinMs: number,
  then: () => unknown = () => {},
): Promise<number[]> {
  const clients = fronts.map(clientOfFront);
  const [first] = clients as [(typeof clients)[0]];
  const { key, keyId } = await first.createKey({ apiId: "api" });
  await rememberKey(clients, key);
  let untilMs = Number.POSITIVE_INFINITY;
  const lastMs = clients.map(() => performance.now());
  const refused = new Set<KeysClient>();
  const watching = clients.map(async (client, i) => {
    while (performance.now() < untilMs) {
      const code = await codeOf(client, key);
      if (code === "VALID") lastMs[i] = performance.now();
      if (code === "NOT_FOUND" && !refused.has(client)) {
        refused.add(client);
        if (refused.size === clients.length) untilMs = Math.min(untilMs, performance.now() + goneMs);
      }
      await delay(5);
    }
  });
  await delay(100);
  await first.deleteKey({ keyId });
  const deletedMs = performance.now();
  then();
  untilMs = Math.min(untilMs, deletedMs + withinMs + afterMs);
  await Promise.all(watching);
  return lastMs.map((atMs) => atMs - deletedMs);
}
