import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { Key, NewKey } from "../../../src/domain/key.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { sampleOwner } from "../../contract/owner-cases.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { surely, through } from "../../faults/postgres/lane-fixture.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { createKey, createOwner, deleteKey } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

/** A store behind a link, with keys in it, and the number of digests of every statement so far. */
async function setUp(count: number) {
  const url = await createTestDatabase();
  const direct = await openTestStore({ url });
  const keys: NewKey[] = Array.from({ length: count }, () => sampleKey(new TestClock()));
  await Promise.all(keys.map((key) => createKey(direct.management, key)));
  const proxy = await FaultyProxy.start(Number(new URL(url).port));
  const statements: number[] = [];
  const ownerStatements: number[] = [];
  const batchCommitted = (name: string, items: number) => {
    if (name === "lookup") statements.push(items);
    if (name === "owner_lookup") ownerStatements.push(items);
  };
  const metrics = { ...createMetrics(), batchCommitted };
  const store = await openTestStore({ url: through(url, proxy.port), metrics, connectionsMax: 10 });
  const find = async (key: NewKey): Promise<Key | undefined> => store.keys.findByDigest(key.secretDigest);
  // Every connection is open before the test begins: those of the pools, and two for each of two lanes.
  const counting =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'latchkey' AND datname = current_database()";
  await expect.poll(async () => (await query(url, counting)).rows[0].n).toBe(4 + 4 + 10 + 4);
  statements.length = 0;
  return { url, direct, keys, proxy, store, statements, ownerStatements, find };
}

function unlessLate(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error;
}

/** What all of them come to. Rejects, if one does, when all have ended. */
async function all<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(asked);
  return Promise.all(asked);
}

/** Asks again if there was no answer in time, as on a busy machine. Only statements of the last time are counted. */
function counted<T>(statements: number[], ask: () => Promise<T[]>): Promise<T[]> {
  return surely(() => {
    statements.length = 0;
    return ask();
  });
}

describe.runIf(hasPostgres)("look-ups on Postgres", () => {
  it("of one turn of the event loop are one statement, and each caller gets its own key or none", async () => {
    const { keys, find, statements } = await setUp(30);
    const unknown = { ...(keys[0] as NewKey), secretDigest: "unknown" };
    const found = await counted(statements, () => all([...keys, unknown, ...keys].map(find)));
    expect(found.map((key) => key?.id)).toEqual([...keys, undefined, ...keys].map((key) => key?.id));
    expect(statements).toEqual([31]);
  });

  it("of owners are one statement for a turn of the event loop too, whatever their ids are", async () => {
    const { store, direct, ownerStatements } = await setUp(3);
    const ids = ["plain", "a,b", '{"quoted\\"}', "NULL", "", "漢字 🔑", "o'"];
    for (const id of ids) await createOwner(direct.management, sampleOwner(id, { remaining: id.length }));
    const asked = [...ids, "a", "b", "unknown", ...ids];
    const found = await counted(ownerStatements, () => all(asked.map(async (id) => store.keys.findOwner(id))));
    expect(found.map((owner) => owner?.counter?.remaining)).toEqual(
      asked.map((id) => (ids.includes(id) ? id.length : undefined)),
    );
    expect(ownerStatements).toEqual([new Set(asked).size]);
  });

  it("of one key share a promise until they are sent, and not after", async () => {
    const { store, direct, statements, proxy } = await setUp(3);
    proxy.delayMs = 50;
    const [beforeIt, afterIt] = await counted(statements, async () => {
      const key = sampleKey(new TestClock());
      await createKey(direct.management, key);
      const replied = new Promise<void>((resolve) => {
        proxy.onReply = () => {
          resolve();
          return "pass";
        };
      });
      const before = store.keys.findByDigest(key.secretDigest);
      expect(store.keys.findByDigest(key.secretDigest)).toBe(before);
      // Its answer is on the way when the key is deleted.
      await Promise.race([replied, before]);
      await deleteKey(direct.management, key.id);
      const after = store.keys.findByDigest(key.secretDigest);
      const found = await all([before as Promise<Key | undefined>, after as Promise<Key | undefined>]);
      return found.map((one) => one?.id === key.id);
    });
    expect([beforeIt, afterIt]).toEqual([true, false]);
    expect(statements).toEqual([1, 1]);
  });

  it("are bounded in size and in number under way: what comes meanwhile goes with the next", async () => {
    const { keys, find, statements, proxy } = await setUp(3);
    const found = await counted(statements, async () => {
      const asked: Promise<Key | undefined>[] = [];
      // No statement is answered before all of them were asked.
      proxy.holding = "answers";
      for (let turn = 0; turn < 40; turn++) {
        asked.push(
          ...Array.from({ length: 30 }, (_, i) => find({ ...(keys[0] as NewKey), secretDigest: `${turn} ${i}` })),
        );
        await nextTurn();
      }
      proxy.holding = undefined;
      return all(asked);
    });
    expect(found).toEqual(Array.from({ length: 40 * 30 }, () => undefined));
    expect(Math.max(...statements)).toBeLessThanOrEqual(500);
    // The first ones by themselves, everything after them in a few.
    expect(statements.length).toBeLessThan(12);
    expect(statements.reduce((sum, items) => sum + items, 0)).toBe(40 * 30);
  });

  it("of texts that anybody can make up have a queue of their own: a flood of them is refused, and holds up no other", async () => {
    const { keys, store, find, proxy, statements } = await setUp(3);
    proxy.delayMs = 20;
    const flood = Array.from({ length: 6000 }, async (_, i) =>
      store.keys.findByDigest(`made up ${i}`, { foreign: true }),
    );
    const settled = Promise.allSettled(flood);
    // Behind all of them.
    const found = await counted(statements, () => all(keys.map(find)));
    expect(found.map((key) => key?.id)).toEqual(keys.map(({ id }) => id));
    expect(statements).toEqual([3]);
    proxy.delayMs = 0;
    const states = new Set((await settled).slice(3500).map(({ status }) => status));
    expect(states).toEqual(new Set(["rejected"]));
    const imported = keys[0] as NewKey;
    const again = await surely(async () => store.keys.findByDigest(imported.secretDigest, { foreign: true }));
    expect(again).toMatchObject({ id: imported.id });
  });

  it("fail with their own statement only", async () => {
    const { keys, find, proxy } = await setUp(3);
    const [one, other] = keys as [NewKey, NewKey];
    const askBoth = async () => {
      let isFirst = true;
      proxy.onReply = () => {
        const fault = isFirst ? "stall" : "pass";
        isFirst = false;
        return fault;
      };
      const first = find(one);
      await nextTurn();
      return Promise.allSettled([first, find(other)]);
    };
    let outcomes = await askBoth();
    // On a busy machine the other may have no answer in time either.
    const isOtherLate = () => outcomes.every(({ status }) => status === "rejected");
    for (let tries = 0; tries < 20 && isOtherLate(); tries++) outcomes = await askBoth();
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const failed = outcomes.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(failed.reason).toBeInstanceOf(Unavailable);
    const again = await surely(() => all([one, other].map(find)));
    expect(again).toMatchObject([{ id: one.id }, { id: other.id }]);
  });

  it("fail alone if a row cannot be read", async () => {
    const { url, keys, find } = await setUp(3);
    const [bad, ...good] = keys as [NewKey, ...NewKey[]];
    await query(url, `UPDATE keys SET meta = 'no JSON' WHERE id = '${bad.id}'`);
    let [failed, ...found] = await Promise.allSettled([bad, ...good].map(find));
    // On a busy machine none of them may have an answer in time.
    const isLate = () => failed?.status === "rejected" && failed.reason.affectsOneKeyOnly !== true;
    for (let tries = 0; tries < 20 && isLate(); tries++)
      [failed, ...found] = await Promise.allSettled([bad, ...good].map(find));
    expect(failed).toMatchObject({ status: "rejected", reason: { affectsOneKeyOnly: true } });
    expect(found.map(({ status }) => status)).toEqual(good.map(() => "fulfilled"));
  });

  it("survive a server or pooler that closes their connections, idle or under way", async () => {
    const { url, keys, find, proxy } = await setUp(8);
    const findAll = async () => (await all(keys.map(find))).map((key) => key?.id);
    const cutAndFind = async () => {
      await surely(findAll);
      proxy.cutAll();
      return findAll();
    };
    const endAndFind = async () => {
      await surely(findAll);
      const ended = query(
        url,
        "SELECT count(pg_terminate_backend(pid))::int AS ended FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      );
      const found: (string | undefined)[] = [];
      while (found.length < 200) found.push(...(await findAll()));
      expect((await ended).rows[0].ended).toBeGreaterThan(3);
      return found;
    };
    for (const interrupt of [cutAndFind, endAndFind]) {
      // On a busy machine connecting anew may take too long. Look-ups that do not survive it never do.
      let found: (string | undefined)[] | undefined;
      for (let tries = 0; tries < 20 && found === undefined; tries++) found = await interrupt().catch(unlessLate);
      expect(new Set(found)).toEqual(new Set(keys.map(({ id }) => id)));
    }
  });
});
