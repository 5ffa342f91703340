import { describe, expect, it, vi } from "vitest";
import { ManagementCall_Encoding } from "../../gen/latchkey/core/v2/core_pb.js";
import { systemClock } from "../../src/ambient/clock.ts";
import { sha256 } from "../../src/ambient/crypto.ts";
import type { Core } from "../../src/core/core.ts";
import type { Question } from "../../src/core/wire.ts";
import type { Key, NewKey } from "../../src/domain/key.ts";
import { metaBytesMax } from "../../src/domain/meta.ts";
import type { Store } from "../../src/store/store.ts";
import type { SpentCounters } from "../../src/store/usage-ledger.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { foundAs, refillRule, sampleKey } from "../contract/sample-keys.ts";
import { askFor } from "../ratelimit/strict/asks.ts";
import { PlainCounters } from "../store/plain-counters.ts";
import { createKey, deleteKey, setRateLimit } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import { TestClock } from "../support/test-clock.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** A core with the store behind it. Several fronts can share it. */
export interface OpenedCore {
  readonly store: Store;
  /** The core as one more front reaches it. It is ready to be called. */
  join(): Promise<Core>;
}

export const clock = new TestClock(systemClock.nowMs());

/** A management call that lists APIs, with these differences. */
export function managementCall(given: Partial<Extract<Question, { case: "management" }>["value"]> = {}): Question {
  const fields = { method: "ApisService/ListApis", body: Buffer.from("{}"), rootKey: testRootKey };
  const call = { encoding: ManagementCall_Encoding.JSON, requestId: "req_1", protocol: "json" };
  return { case: "management", value: { ...fields, ...call, ...given } };
}

let made = 0;

/** A key with a digest as real ones have. */
export function realKey(given: Partial<NewKey> = {}): NewKey {
  return sampleKey(clock, { secretDigest: sha256(`secret ${made++}`), ...given });
}

/** Metadata that takes exactly so many bytes as JSON. */
export function metaOf(bytes: number): NewKey["meta"] {
  const empty = Buffer.byteLength(JSON.stringify({ text: "" }));
  return { text: "x".repeat(bytes - empty) };
}

/** A core whose store has these keys. */
export async function openWith(open: () => Promise<OpenedCore>, ...keys: NewKey[]) {
  const { store, join } = await open();
  for (const key of keys) await createKey(store.management, key);
  return { store, join, core: await join() };
}

/** What every core does, wherever it is. Each case opens one of its own. */
export function coreCases(name: string, open: () => Promise<OpenedCore>): void {
  const setUp = (...keys: NewKey[]) => openWith(open, ...keys);

  describe(`look-ups of ${name}`, () => {
    it.each<[string, Partial<NewKey>]>([
      ["without anything optional", {}],
      ["with an owner and a name", { ownerId: "owner 1", name: "a name" }],
      [
        "with names of the greatest length",
        { apiId: "a".repeat(255), ownerId: "😀".repeat(255), name: "é".repeat(255) },
      ],
      [
        "with unicode",
        { ownerId: "Zoë 😀 \u202e \ud7ff", name: "名前\n\t\"'\\", meta: { "ключ 😀": ["\u2028", "\u0001"] } },
      ],
      [
        "with all kinds of metadata",
        { meta: { a: null, b: [true, 1.5, -0.25, 1e300, ""], c: { d: { e: [[], {}] } } } },
      ],
      ["with names of metadata that mean something elsewhere", { meta: JSON.parse('{"__proto__":1,"toString":{}}') }],
      ["with as much metadata as there may be", { meta: metaOf(metaBytesMax) }],
      ["that is disabled", { enabled: false }],
      ["that expires at once", { expiresAtMs: 1 }],
      ["that expires at the end of time", { expiresAtMs: 253_402_300_799_999 }],
      ["with a strict limit", { rateLimit: { mode: "strict", limit: 1, durationMs: 1000 } }],
      ["with a local limit", { rateLimit: { mode: "local", limit: 2_147_483_647, durationMs: 2_592_000_000 } }],
      [
        "with limits that have names",
        {
          rateLimits: [
            { name: "x".repeat(64), rule: { mode: "strict", limit: 2_147_483_647, durationMs: 2_592_000_000 } },
            { name: "-", rule: { mode: "local", limit: 1, durationMs: 1000 } },
          ],
        },
      ],
      ["with a bound on costs", { costMax: 2_147_483_647 }],
      ["with permissions", { permissions: ["*", "docs.*", "x".repeat(128)] }],
      ["for some addresses", { ipAllow: ["255.255.255.255", "10.0.0.0/8", "::/0", "fe80::/10", "ffff::ffff"] }],
      ["with a counter that is used up", { remaining: 0 }],
      ["with a full counter", { remaining: 2_147_483_647 }],
      ["with a counter that is refilled", { remaining: 5, refill: refillRule({ interval: "monthly" }) }],
    ])("find a key %s", async (_, given) => {
      const key = realKey(given);
      const { core } = await setUp(realKey(), key, realKey());
      const found = await core.keys.findByDigest(key.secretDigest);
      expect(found).toEqual(foundAs(key));
      expect(JSON.stringify(found?.meta)).toBe(JSON.stringify(key.meta));
    });

    it("find nothing where there is nothing", async () => {
      const { core } = await setUp(realKey());
      expect(await core.keys.findByDigest(sha256("another"))).toBeUndefined();
    });

    it("find what was stored before they began, each its own, 1 000 at once", async () => {
      const keys = Array.from({ length: 500 }, (_, i) => realKey({ name: `name ${i}`, remaining: i }));
      const { core } = await setUp(...keys);
      const lookUps: Promise<Key | undefined>[] = [];
      for (const { secretDigest } of keys) {
        lookUps.push(Promise.resolve(core.keys.findByDigest(secretDigest)));
        lookUps.push(Promise.resolve(core.keys.findByDigest(sha256(`not ${secretDigest}`))));
      }
      expect(await Promise.all(lookUps)).toEqual(keys.flatMap((key) => [foundAs(key), undefined]));
    });

    it("of one secret in one turn all find it", async () => {
      const key = realKey();
      const { core } = await setUp(key);
      const found = await Promise.all([1, 2, 3].map(() => core.keys.findByDigest(key.secretDigest)));
      expect(found).toEqual(Array(3).fill(foundAs(key)));
    });
  });

  describe(`uses of ${name}`, () => {
    it("are exact: of 300 at once by two fronts, 100 get each number once", async () => {
      const key = realKey({ remaining: 100 });
      const { core, join, store } = await setUp(key);
      const fronts = [core, await join()] as const;
      const uses = [];
      for (let i = 0; i < 300; i++) {
        uses.push(fronts[i % 2 === 0 ? 0 : 1].usage.spend([key.id], 1));
        if (i % 25 === 0) await nextTurn();
      }
      const answers = await Promise.all(uses);
      const spent = answers.flatMap((answer) => (answer.outcome === "spent" ? [answer.remaining] : []));
      expect(spent.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
      const refused = answers.filter(({ outcome }) => outcome !== "spent");
      expect(refused).toEqual(Array(200).fill({ outcome: "exhausted", remaining: 0 }));
      expect((await store.keys.findByDigest(key.secretDigest))?.counter).toEqual({ remaining: 0 });
    });

    it("of one turn get their numbers in order", async () => {
      const key = realKey({ remaining: 3 });
      const { core } = await setUp(key);
      const answers = await Promise.all([1, 2, 3, 4].map(() => core.usage.spend([key.id], 1)));
      const spent = (remaining: number) => ({ outcome: "spent", remaining });
      expect(answers).toEqual([spent(2), spent(1), spent(0), { outcome: "exhausted", remaining: 0 }]);
    });

    it("of any cost, on one counter or two, are answered in order, and a turn's worth of them as one", async () => {
      const [a, b, shared] = [realKey({ remaining: 60 }), realKey({ remaining: 300 }), realKey({ remaining: 400 })];
      const { core } = await setUp(a, b, shared);
      const plain = new PlainCounters({ [a.id]: 60, [b.id]: 300, [shared.id]: 400 });
      const counters: SpentCounters[] = [[a.id, shared.id], [b.id, shared.id], [shared.id], ["key_none", shared.id]];
      const asked = Array.from(
        { length: 250 },
        (_, i) => [counters[(i * 7) % 4] as SpentCounters, 1 + ((i * 3) % 20)] as const,
      );
      const answers = await Promise.all(asked.map((each) => core.usage.spend(...each)));
      expect(answers).toEqual(asked.map((each) => plain.spend(...each)));
      expect(new Set(answers.map((answer) => ("lacking" in answer ? answer.lacking : answer.outcome)))).toEqual(
        new Set(["spent", "exhausted", "missing", "own", "shared"]),
      );
    });

    it("find a counter exhausted, and charge nothing", async () => {
      const key = realKey({ remaining: 0 });
      const { core } = await setUp(key);
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "exhausted", remaining: 0 });
    });

    it("find a key missing that has no counter, or is none", async () => {
      const key = realKey();
      const { core } = await setUp(key);
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "missing" });
      expect(await core.usage.spend(["key_none"], 1)).toEqual({ outcome: "missing" });
    });
  });

  describe(`permits of ${name}`, () => {
    const rateLimit = { mode: "strict", limit: 40, durationMs: 60_000 } as const;

    it("are granted up to the limit, with all that a pool must know", async () => {
      const key = realKey({ rateLimit });
      const { core } = await setUp(key);
      const permits = core.joinPermits(() => {});
      const settled = { outcome: "settled", gen: 1, durationMs: 60_000, limit: 40, clockBehind: false };
      const first = await permits.exchange(key.id, askFor({ waiting: ones(15) }));
      expect(first).toMatchObject({ ...settled, granted: 15, left: 25, outstanding: 15 });
      const { endsInMs, endsAtMs } = first as { endsInMs: number; endsAtMs: number };
      expect(endsInMs).toBeGreaterThan(50_000);
      expect(endsInMs).toBeLessThanOrEqual(60_000);
      expect(Math.abs(endsAtMs - endsInMs - systemClock.nowMs())).toBeLessThan(10_000);
      const back = await permits.exchange(key.id, askFor({ gen: 1, returned: 5, spent: 10 }));
      expect(back).toMatchObject({ ...settled, granted: 0, left: 30, outstanding: 0 });
      const rest = await permits.exchange(key.id, askFor({ waiting: ones(100), gen: 1 }));
      expect(rest).toMatchObject({ ...settled, granted: 30, left: 0 });
    });

    it("are missing for a key without a strict limit, and for none", async () => {
      const key = realKey({ remaining: 1 });
      const { core } = await setUp(key);
      const permits = core.joinPermits(() => {});
      for (const keyId of [key.id, "key_none"]) {
        expect(await permits.exchange(keyId, askFor({ waiting: ones(1) }))).toEqual({ outcome: "missing" });
      }
    });

    it("that a front holds are recalled when another has too few", async () => {
      const key = realKey({ rateLimit });
      const { core, join } = await setUp(key);
      const recalled: string[] = [];
      const holder = core.joinPermits((keyId) => recalled.push(`holder ${keyId}`));
      const needy = (await join()).joinPermits((keyId) => recalled.push(`needy ${keyId}`));
      expect(await holder.exchange(key.id, askFor({ waiting: ones(40) }))).toMatchObject({ granted: 40 });
      expect(await needy.exchange(key.id, askFor({ waiting: ones(1) }))).toMatchObject({ granted: 0 });
      await vi.waitFor(() => expect(recalled).toEqual([`holder ${key.id}`]));
      await holder.exchange(key.id, askFor({ gen: 1, returned: 40 }));
      expect(await needy.exchange(key.id, askFor({ waiting: ones(1), gen: 1 }))).toMatchObject({ granted: 1 });
    });
  });

  describe(`inspections of ${name}`, () => {
    const rateLimit = { mode: "strict", limit: 40, durationMs: 60_000 } as const;

    it("open no window, take nothing, and recall what all fronts hold", async () => {
      const key = realKey({ rateLimit });
      const { core, join } = await setUp(key);
      const recalled: string[] = [];
      const holder = core.joinPermits((keyId) => recalled.push(`holder ${keyId}`));
      const other = (await join()).joinPermits(() => recalled.push("other"));
      expect(await other.inspect(key.id)).toMatchObject({ gen: 0, endsInMs: 0, granted: 0, limit: 40 });
      expect(await holder.exchange(key.id, askFor({ waiting: ones(39) }))).toMatchObject({ gen: 1, granted: 39 });
      const open = { outcome: "settled", gen: 1, granted: 0, limit: 40 };
      expect(await other.inspect(key.id)).toMatchObject({ ...open, left: 1, outstanding: 39 });
      await vi.waitFor(() => expect(recalled).toEqual([`holder ${key.id}`]));
      await holder.exchange(key.id, askFor({ gen: 1, returned: 30, spent: 9 }));
      expect(await other.inspect(key.id)).toMatchObject({ ...open, left: 31, outstanding: 0 });
      expect(recalled).toEqual([`holder ${key.id}`]);
    });

    it("find no window of a key without a strict limit", async () => {
      const key = realKey({ remaining: 1 });
      const { core } = await setUp(key);
      expect(await core.joinPermits(() => {}).inspect(key.id)).toEqual({ outcome: "missing" });
    });
  });

  describe(`changes of ${name}`, () => {
    it("are everything for a front that knows nothing, and nothing as long as nothing has changed", async () => {
      const { core } = await setUp(realKey());
      const { changed, position, ageMs } = await core.changes.read(undefined);
      expect(changed).toBe("everything");
      expect(ageMs).toBeLessThan(10_000);
      expect(await core.changes.read(position)).toMatchObject({ changed: [], position });
    });

    it("tell of a deletion with the digests that the key had, to each front that does not know of it", async () => {
      const [gone, changed, other] = [realKey(), realKey(), realKey()];
      const { store, core, join } = await setUp(gone, changed, other);
      const before = await core.changes.read(undefined);
      await deleteKey(store.management, gone.id);
      await setRateLimit(store.management, changed.id, undefined);
      const told = [gone, changed].map(({ id, secretDigest }) => ({ kind: "key", keyId: id, digests: [secretDigest] }));
      for (const front of [core, await join()]) {
        const news = await front.changes.read(before.position);
        expect(news.changed).toEqual(told);
        expect((await front.changes.read(news.position)).changed).toEqual([]);
      }
    });

    it("are everything for a position of another history", async () => {
      const { core } = await setUp();
      const { position } = await core.changes.read(undefined);
      expect((await core.changes.read({ ...position, epoch: "another" })).changed).toBe("everything");
      const ahead = { ...position, transaction: position.transaction + 1000 };
      expect((await core.changes.read(ahead)).changed).toBe("everything");
    });
  });
}
