import { describe, expect, it, vi } from "vitest";
import type { StrictLimiter } from "../../src/ratelimit/strict/strict-limiter.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { askFor } from "../ratelimit/strict/asks.ts";
import { ones } from "../support/ones.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import {
  edgeAt,
  limiterAt,
  newStore,
  startTestCoordinator,
  strictKey,
  type TestCoordinator,
  type TestEdge,
} from "./test-coordinator.ts";

const patient = { timeout: 60_000 };
const keyIds = Array.from({ length: 200 }, (_, i) => `key_${i}`);

/** For each key, which of these coordinators its ask went to. */
async function placesOf(edge: TestEdge, coordinators: readonly TestCoordinator[]): Promise<string[]> {
  for (const { asked } of coordinators) asked.length = 0;
  await Promise.all(keyIds.map((keyId) => edge.permits.exchange(keyId, askFor({ waiting: ones(1) }))));
  const addressesOf = new Map<string, string[]>();
  for (const { address, asked } of coordinators) {
    for (const { subject: keyId } of asked) addressesOf.set(keyId, [...(addressesOf.get(keyId) ?? []), address]);
  }
  return keyIds.map((keyId) => (addressesOf.get(keyId) ?? []).join());
}

/** Resolves when the edge has found its way to a coordinator, and to no other than those of this number. */
async function untilUp(edge: TestEdge, coordinators: readonly TestCoordinator[]): Promise<void> {
  await vi.waitFor(async () => {
    const places = await placesOf(edge, coordinators);
    expect(new Set(places).size).toBe(coordinators.length);
  }, patient);
}

async function startTwo() {
  const store = newStore();
  const two = [await startTestCoordinator({ store }), await startTestCoordinator({ store })] as const;
  return { store, two, addresses: two.map(({ address }) => address) };
}

describe("several coordinators", () => {
  it("are each asked for their own keys, about as many, the same on every edge, named in any order", async () => {
    const { two, addresses } = await startTwo();
    const edges = [edgeAt(addresses), edgeAt([...addresses].reverse())] as const;
    for (const edge of edges) await untilUp(edge, two);
    const places = await placesOf(edges[0], two);
    expect(await placesOf(edges[1], two)).toEqual(places);
    for (const address of addresses) {
      const share = places.filter((place) => place === address).length;
      expect(share).toBeGreaterThan(keyIds.length / 4);
    }
  });

  it("are all tried before an edge serves, so that edges agree where a key's asks meet", async () => {
    const [near, far] = [await ScriptedCoordinator.start(), await ScriptedCoordinator.start()];
    near.state = { pathMs: 1 };
    far.welcomes = false;
    const { core } = edgeAt([near.address, far.address]);
    let isUsable = false;
    void core.usable.then(() => {
      isUsable = true;
    });
    await vi.waitFor(() => expect([near.greetings.length, far.streams]).toEqual([1, 1]), patient);
    await nextTurn();
    expect([core.coordinators.hasLedger, isUsable]).toEqual([true, false]);
    far.state = { ledgerAway: true };
    far.say({});
    await core.usable;
  });

  it("take over from one that is away, which gets back its own keys and no others when it returns", async () => {
    const { two, addresses, store } = await startTwo();
    const edge = edgeAt(addresses);
    await untilUp(edge, two);
    const before = await placesOf(edge, two);
    await two[0].stop();
    await untilUp(edge, [two[1]]);
    expect(new Set(await placesOf(edge, two))).toEqual(new Set([two[1].address]));
    const again = await startTestCoordinator({ store, port: two[0].port });
    await untilUp(edge, [again, two[1]]);
    expect(await placesOf(edge, [again, two[1]])).toEqual(before);
  });

  it("take over from one whose ledger is away, which goes on with reports and gets back its keys", async () => {
    const { two, addresses } = await startTwo();
    const edge = edgeAt(addresses);
    await untilUp(edge, two);
    const before = await placesOf(edge, two);
    two[0].ledger.isAway = true;
    await untilUp(edge, [two[1]]);
    expect(edge.core.coordinators.links.map(({ link }) => link.isUp)).toEqual([true, true]);
    const { epoch } = await edge.core.windows.exchange([]);
    expect(epoch.split(",").filter((each) => each !== "").length).toBe(2);
    two[0].ledger.isAway = false;
    await untilUp(edge, two);
    expect(await placesOf(edge, two)).toEqual(before);
  });

  it("that are all away make an edge say so at once", async () => {
    const { two, addresses } = await startTwo();
    const edge = edgeAt(addresses);
    await untilUp(edge, two);
    for (const coordinator of two) await coordinator.stop();
    await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(false), patient);
    expect(await edge.permits.exchange("k", askFor({ waiting: ones(1) }))).toEqual({ outcome: "notExecuted" });
    await expect(edge.core.windows.exchange([])).resolves.toMatchObject({ news: [] });
  });
});

describe("edges with strict limits over coordinators", () => {
  it("let exactly the limit pass together, with requests to any of them", async () => {
    const { store, two, addresses } = await startTwo();
    const edges = [limiterAt(addresses), limiterAt(addresses), limiterAt(addresses)];
    for (const edge of edges) await untilUp(edge, two);
    for (const limit of [1, 7, 500]) {
      const keyId = await strictKey(store, limit);
      expect(await crowd(edges, keyId, limit * 2 + 30)).toEqual({ admitted: limit, limited: limit + 30 });
    }
  });

  it("go on through the loss of a key's coordinator, and never over the limit", async () => {
    const { store, two, addresses } = await startTwo();
    const edges = [limiterAt(addresses), limiterAt(addresses)];
    for (const edge of edges) await untilUp(edge, two);
    const keyId = await strictKey(store, 300);
    expect(await crowd(edges, keyId, 100)).toEqual({ admitted: 100 });
    const asked = two.find((coordinator) => coordinator.asked.some((ask) => ask.subject === keyId));
    await asked?.stop();
    const { admitted = 0, limited = 0 } = await crowd(edges, keyId, 600);
    expect(admitted + limited).toBe(600);
    // Permits under way are lost until the window ends.
    expect(admitted).toBeLessThanOrEqual(200);
    expect(admitted).toBeGreaterThan(100);
  });

  it("ask another coordinator when theirs does not answer, and take its late answer too", async () => {
    const store = newStore();
    const held: (() => void)[] = [];
    const [slow, quick] = [await startTestCoordinator({ store }), await startTestCoordinator({ store })];
    const edge = limiterAt([slow.address, quick.address]);
    await untilUp(edge, [slow, quick]);
    const keyId = await strictKey(store, 100);
    await edge.permits.exchange(keyId, askFor({}));
    const preferred = [slow, quick].find(({ asked }) => asked.some((ask) => ask.subject === keyId)) as TestCoordinator;
    const other = preferred === slow ? quick : slow;
    preferred.ledger.delay = () => new Promise((resolve) => held.push(resolve));
    const waiting = crowd([edge], keyId, 5);
    await vi.waitFor(() => expect(held.length).toBe(1));
    expect(other.asked.filter((ask) => ask.subject === keyId)).toEqual([]);
    preferred.ledger.isAway = true;
    expect(await waiting).toEqual({ admitted: 5 });
    const before = edge.held;
    for (const resolve of held) resolve();
    // The late permits are held, or were returned at once: the ledger has them again.
    await vi.waitFor(() => expect(edge.held).not.toBe(before), patient);
    expect(await crowd([edge], keyId, 110)).toEqual({ admitted: 95, limited: 15 });
  });

  it("learn that another edge needs permits they hold, and return them", async () => {
    const { address, store } = await startTestCoordinator();
    const [hoarder, needy] = [limiterAt([address]), limiterAt([address])];
    const keyId = await strictKey(store, 40);
    await vi.waitFor(
      () => expect([hoarder.core.coordinators.isUp, needy.core.coordinators.isUp]).toEqual([true, true]),
      patient,
    );
    await crowd([hoarder], keyId, 15);
    expect(hoarder.held).toBeGreaterThan(0);
    expect(await crowd([needy], keyId, 60)).toEqual({ admitted: 25, limited: 35 });
    expect(hoarder.held).toBe(0);
  });

  it("return the permits they hold when they stop", async () => {
    const { address, store } = await startTestCoordinator();
    const [leaving, staying] = [limiterAt([address]), limiterAt([address])];
    const keyId = await strictKey(store, 40);
    await vi.waitFor(
      () => expect([leaving.core.coordinators.isUp, staying.core.coordinators.isUp]).toEqual([true, true]),
      patient,
    );
    await crowd([leaving], keyId, 15);
    expect(leaving.held).toBeGreaterThan(0);
    await leaving.stop();
    expect(await crowd([staying], keyId, 60)).toEqual({ admitted: 25, limited: 35 });
  });
});

/** So many verifications, spread over the edges in turns of a few; how many ended how. */
async function crowd(edges: readonly StrictLimiter[], keyId: string, times: number): Promise<Record<string, number>> {
  const outcomes: Record<string, number> = {};
  const rule = { mode: "strict", limit: 1, durationMs: 60_000 } as const;
  const verify = async (edge: StrictLimiter) => {
    const permit = await edge.take(keyId, rule);
    permit.commit();
    outcomes[permit.outcome] = (outcomes[permit.outcome] ?? 0) + 1;
  };
  for (let done = 0; done < times; ) {
    const burst = Math.min(times - done, 5 * edges.length);
    await Promise.all(Array.from({ length: burst }, (_, i) => verify(edges[i % edges.length] as StrictLimiter)));
    done += burst;
  }
  return outcomes;
}
