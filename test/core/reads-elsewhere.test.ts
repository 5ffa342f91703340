import { describe, expect, it, vi } from "vitest";
import { fromWireCharges } from "../../src/core/wire-charges.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey } from "../support/manage.ts";
import { realKey } from "./core-cases.ts";
import { setUpLink } from "./link-fixture.ts";
import { edgeAt, newStore, startTestCoordinator } from "./test-coordinator.ts";

const failure = "the look-up failed on purpose";

/** The same store, in which no key can be found. */
function withoutLookups(store: Store): Store {
  const findByDigest = () => Promise.reject(new Unavailable(failure));
  return { ...store, keys: { ...store.keys, findByDigest } };
}

async function connected(addresses: readonly string[]) {
  const { core } = edgeAt(addresses);
  await vi.waitFor(() => expect(core.coordinators.links.every(({ link }) => link.hasLedger)).toBe(true));
  return core;
}

describe("a call that only reads", () => {
  it("is made again at another coordinator when one has failed", async () => {
    const store = newStore();
    const keys = Array.from({ length: 30 }, () => realKey());
    for (const key of keys) await createKey(store.management, key);
    const [failing, other] = [
      await startTestCoordinator({ store: withoutLookups(store) }),
      await startTestCoordinator({ store }),
    ];
    const core = await connected([failing.address, other.address]);
    const lookUpAll = () => Promise.all(keys.map(({ secretDigest }) => core.keys.findByDigest(secretDigest)));
    const isLate = (error: Error) => error.message.includes("not answered in time");
    const orAgain = (error: Error): ReturnType<typeof lookUpAll> => {
      if (!isLate(error)) throw error;
      return lookUpAll().catch(orAgain);
    };
    // Again on a machine that stands still: what is shown is where look-ups go, not how long they may take.
    const found = await lookUpAll().catch(orAgain);
    expect(found.map((key) => key?.id)).toEqual(keys.map(({ id }) => id));
  });

  it("fails with the last failure when all have failed", async () => {
    const store = withoutLookups(newStore());
    const addresses = [
      (await startTestCoordinator({ store })).address,
      (await startTestCoordinator({ store })).address,
    ];
    const core = await connected(addresses);
    await expect(core.keys.findByDigest(realKey().secretDigest)).rejects.toThrow(failure);
  });
});

describe("a call that waits to be sent", () => {
  it("is dropped when its caller has given up", async () => {
    const { coordinator, link } = await setUpLink();
    let isWanted = true;
    const question = { case: "charge", value: { subject: "k", cost: 1, count: 1 } } as const;
    const charged = link.call(question, { isWanted: () => isWanted });
    isWanted = false;
    await expect(charged).rejects.toMatchObject({ name: "NotExecuted" });
    void link.call(question).catch(() => {});
    await vi.waitFor(() =>
      expect(coordinator.requests.flatMap(({ charges }) => fromWireCharges(charges))).toHaveLength(1),
    );
  });
});
