import { expect, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { cacheKeys } from "../../src/server/front.ts";
import type { Change } from "../../src/store/changes.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { edgeAt } from "./test-coordinator.ts";

/**
 * The public API of an edge in this process, on a port of its own, that has found its coordinators. It remembers keys, and
 * learns of changes from the answers to its own management calls only, or not at all if it `isDeaf`.
 */
export async function startEdgeFront(addresses: readonly string[], { isDeaf = false } = {}) {
  const changes: (readonly Change[] | "everything")[] = [];
  const edge = edgeAt(addresses, {
    async onChanged(changed) {
      changes.push(changed);
      if (isDeaf) return;
      if (changed === "everything") cache.memory.invalidateAll();
      else for (const change of changed) cache.memory.invalidate(change);
    },
  });
  const { core } = edge;
  await vi.waitFor(() => expect(core.coordinators.links.every(({ link }) => link.hasLedger)).toBe(true));
  const ambient = { clock: systemClock, metrics: createMetrics() };
  const bounds = { ttlMs: 3_600_000, keysMax: 10_000, waitingRoom: new WaitingRoom(10_000) };
  const cache = cacheKeys(core.keys, { ...ambient, ...bounds });
  cache.memory.newsIsCurrent(systemClock.monotonicMs());
  const { check, readHolders, carryOut } = core.management;
  let verdict: Awaited<ReturnType<CheckRootKey>>;
  const { onePort } = composePublicApi(() => ({
    ...cache,
    usage: core.usage,
    // Remembered, as an edge does.
    checkRootKey: async (presented) => (verdict ??= await check(presented)),
    readHolders,
    manages: { carryOut },
  }));
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return { ...edge, changes, baseUrl: `http://127.0.0.1:${port}` };
}
