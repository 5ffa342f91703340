import { expect, onTestFinished, vi } from "vitest";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { edgeAt } from "./test-coordinator.ts";

/** The public API of an edge in this process, on a port of its own, that has found its coordinators. */
export async function startEdgeFront(addresses: readonly string[]) {
  const edge = edgeAt(addresses);
  const { core } = edge;
  await vi.waitFor(() => expect(core.coordinators.links.every(({ link }) => link.hasLedger)).toBe(true));
  const { check, readHolders, carryOut } = core.management;
  let verdict: Awaited<ReturnType<CheckRootKey>>;
  const { onePort } = composePublicApi(() => ({
    keys: core.keys,
    usage: core.usage,
    // Remembered, as an edge does.
    checkRootKey: async (presented) => (verdict ??= await check(presented)),
    readHolders,
    manages: { carryOut },
  }));
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return { ...edge, baseUrl: `http://127.0.0.1:${port}` };
}
