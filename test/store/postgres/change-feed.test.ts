import { readFileSync } from "node:fs";
import pg from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { FeedNews, FeedPosition } from "../../../src/store/change-feed.ts";
import { FeedRelay } from "../../../src/store/feed-relay.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PgChangeFeed } from "../../../src/store/postgres/pg-change-feed.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { tidyChanges } from "../../../src/store/sql/tidy.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, deleteKey } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

/** The end of a hang. */
const patient = { timeout: 60_000 };

/** A connection of somebody else to the same database. */
async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function setUp() {
  const url = await createTestDatabase();
  const store = await openTestStore({ url });
  const newReader = () => {
    const feed = new PgChangeFeed({ servers: new PgServers(url), random: createSystemRandom() });
    onTestFinished(() => feed.close());
    return feed;
  };
  const addKey = async () => {
    const key = sampleKey(new TestClock());
    await createKey(store.management, key);
    return key;
  };
  return { url, store, newReader, addKey };
}

function keyIdsOf({ changed }: FeedNews): readonly string[] {
  if (changed === "everything") throw new Error("the reader was told to forget everything");
  return changed.map((change) => (change.kind === "key" ? change.keyId : change.kind));
}

/** A reader as one would write it first: it remembers the highest id that it has seen, and reads what lies above. */
async function readBySequence(url: string, above: number): Promise<{ highest: number; keyIds: string[] }> {
  const text = `SELECT transaction_id::int AS id, target_id FROM changes WHERE transaction_id > ${above} ORDER BY 1`;
  const rows = (await query(url, text)).rows as { id: number; target_id: string }[];
  return { highest: Math.max(above, ...rows.map(({ id }) => id)), keyIds: rows.map(({ target_id }) => target_id) };
}

/** Deletes the key as the store does, in a transaction that stays open. */
async function deleteAndHold(client: pg.Client, { id, secretDigest }: { id: string; secretDigest: string }) {
  await client.query("BEGIN");
  await client.query(`INSERT INTO changes (kind, target_id, digests) VALUES ('key', '${id}', '${secretDigest}')`);
  await client.query(`DELETE FROM keys WHERE id = '${id}'`);
}

/** A coordinator's relay. The feed is read for it when a test says so, as `ChangeFollower` does it. */
function startRelay(feed: PgChangeFeed) {
  let position: FeedPosition | undefined;
  const coordinator = {
    storeReads: 0,
    relay: new FeedRelay({
      clock: systemClock,
      feed: {
        read(since) {
          coordinator.storeReads++;
          return feed.read(since);
        },
      },
    }),
    async readFeed() {
      const askedAtMs = systemClock.monotonicMs();
      const news = await feed.read(position);
      position = news.position;
      coordinator.relay.onNews(news, askedAtMs);
    },
  };
  return coordinator;
}

describe.runIf(hasPostgres)("the change feed on Postgres", () => {
  it("does not miss a change that commits long after later ones, although positions were read meanwhile", async () => {
    const { url, store, newReader, addKey } = await setUp();
    const held = await addKey();
    const feed = newReader();
    let { position } = await feed.read(undefined);
    let { highest } = await readBySequence(url, 0);
    const client = await connect(url);
    await deleteAndHold(client, held);

    const seenBySequence: string[] = [];
    for (let later = 0; later < 3; later++) {
      const key = await addKey();
      await deleteKey(store.management, key.id);
      const news = await feed.read(position);
      expect(keyIdsOf(news), "later ones are told meanwhile, each once").toEqual([key.id]);
      position = news.position;
      const read = await readBySequence(url, highest);
      highest = read.highest;
      seenBySequence.push(...read.keyIds);
    }
    await client.query("COMMIT");
    expect(keyIdsOf(await feed.read(position))).toEqual([held.id]);
    // Another process goes on from the same position, as after the failover of a coordinator. It may be told more.
    expect(keyIdsOf(await newReader().read(position))).toContain(held.id);

    const last = await readBySequence(url, highest);
    expect([...seenBySequence, ...last.keyIds], "the control: who trusts the sequence alone misses it").not.toContain(
      held.id,
    );
  });

  it.each(["before", "after"])(
    "does not miss a change whose commit is held while a front moves to another coordinator, if it commits %s that one's reading",
    async (moment) => {
      const { url, store, newReader, addKey } = await setUp();
      const [one, other] = [startRelay(newReader()), startRelay(newReader())];
      for (const { readFeed } of [one, other]) await readFeed();
      const held = await addKey();
      let { position } = await one.relay.read(undefined);
      const client = await connect(url);
      await deleteAndHold(client, held);
      for (let later = 0; later < 3; later++) {
        const key = await addKey();
        await deleteKey(store.management, key.id);
        for (const { readFeed } of [one, other]) await readFeed();
        const news = await one.relay.read(position);
        expect(keyIdsOf(news), "later ones are told meanwhile, each once").toEqual([key.id]);
        position = news.position;
      }

      const told: string[] = [];
      const readOther = async () => {
        const news = await other.relay.read(position);
        told.push(...keyIdsOf(news));
        position = news.position;
      };
      if (moment === "before") await client.query("COMMIT");
      await other.readFeed();
      await readOther();
      expect(told.includes(held.id)).toBe(moment === "before");
      if (moment === "after") await client.query("COMMIT");
      await other.readFeed();
      const { storeReads } = other;
      await readOther();
      expect(told).toContain(held.id);
      expect(other.storeReads, "the front is in the relay's log by then").toBe(storeReads);
    },
  );

  it("tells nothing of a change that was rolled back, and moves on", async () => {
    const { url, newReader, addKey } = await setUp();
    const feed = newReader();
    const { position } = await feed.read(undefined);
    const client = await connect(url);
    await deleteAndHold(client, await addKey());
    await client.query("ROLLBACK");
    expect(keyIdsOf(await feed.read(position))).toEqual([]);
  });

  it("never lets a position pass a transaction that is open", async () => {
    const { url, store, newReader, addKey } = await setUp();
    const client = await connect(url);
    await client.query("BEGIN");
    const { id } = (await client.query("SELECT pg_current_xact_id()::text::int AS id")).rows[0] as { id: number };
    const key = await addKey();
    await deleteKey(store.management, key.id);
    const feed = newReader();
    for (let i = 0; i < 3; i++) expect((await feed.read(undefined)).position.transaction).toBeLessThanOrEqual(id);
    await client.query("COMMIT");
    // Positions wait for transactions of other databases too, such as one that is being created.
    await vi.waitFor(
      async () => expect((await feed.read(undefined)).position.transaction).toBeGreaterThan(id),
      patient,
    );
  });

  it("begins at its own heartbeat at the latest: a server that takes over has that, and gives higher ids to others", async () => {
    const { url, newReader } = await setUp();
    const feed = newReader();
    const { position } = await feed.read(undefined);
    const { rows } = await query(url, "SELECT max(xmin::text::int) AS id FROM change_readers");
    expect(position.transaction).toBeLessThanOrEqual(rows[0].id);
  });

  it("gives each of several reads at the same time its turn and a heartbeat of its own", async () => {
    const { newReader } = await setUp();
    const feed = newReader();
    const news = await Promise.all(Array.from({ length: 5 }, () => feed.read(undefined)));
    expect(news.map(({ position }) => position.heartbeat?.count)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(news.map(({ position }) => position.heartbeat?.reader)).size).toBe(1);
  });

  const losses: [string, string][] = [
    ["does not have the heartbeats that it had confirmed", "UPDATE change_readers SET heartbeats = heartbeats - 1"],
    ["has no heartbeat of this reader at all", "DELETE FROM change_readers"],
    ["has another epoch, by the line of the operations guide", "UPDATE change_feed SET epoch = CAST(random() AS text)"],
  ];
  it.each(losses)("forgets everything, once, if the server %s", async (_, loss) => {
    const { url, newReader } = await setUp();
    const feed = newReader();
    const { position } = await feed.read((await feed.read(undefined)).position);
    await query(url, loss);
    const after = await feed.read(position);
    expect(after.changed).toBe("everything");
    expect((await feed.read(after.position)).changed).toEqual([]);
  });

  it("is told to forget everything by a row that says so, and by a key's row without digests", async () => {
    const { url, newReader } = await setUp();
    const feed = newReader();
    let { position } = await feed.read(undefined);
    for (const row of ["(kind) VALUES ('everything')", "(kind, target_id) VALUES ('key', 'key_1')"]) {
      await query(url, `INSERT INTO changes ${row}`);
      const news = await feed.read(position);
      expect(news.changed).toBe("everything");
      position = news.position;
      expect((await feed.read(position)).changed).toEqual([]);
    }
  });

  it("tidies old rows away, forgets everything only for positions before them, and never passes an open transaction", async () => {
    const { url, store, newReader, addKey } = await setUp();
    const engine = openPgEngine({ url, connectionsMax: 1 });
    onTestFinished(() => engine.close());
    const feed = newReader();
    const positions: FeedPosition[] = [];
    for (let i = 0; i < 6; i++) {
      const { rows } = await query(url, "SELECT max(transaction_id)::int AS last FROM changes");
      // Positions wait for transactions of other databases too, such as one that is being created.
      await vi.waitFor(async () => {
        positions[i] = (await feed.read(undefined)).position;
        expect(positions[i]?.transaction).toBeGreaterThan(rows[0].last);
      }, patient);
      await deleteKey(store.management, (await addKey()).id);
    }
    const client = await connect(url);
    const held = await addKey();
    await deleteAndHold(client, held);
    for (let i = 0; i < 3; i++) await deleteKey(store.management, (await addKey()).id);
    const { rows } = await client.query("SELECT pg_current_xact_id()::text::int AS id");
    const duringHold = await vi.waitFor(async () => {
      const { position } = await feed.read(undefined);
      expect(position.transaction).toBe(rows[0].id);
      return position;
    }, patient);

    const count = async () => (await query(url, "SELECT count(*)::int AS n FROM changes")).rows[0].n;
    const tidyTo = (rows: number) =>
      vi.waitFor(async () => {
        await tidyChanges(engine, rows);
        expect(await count()).toBe(rows);
      }, patient);
    await tidyTo(5);
    const known = await Promise.all(positions.map(async (since) => (await newReader().read(since)).changed));
    expect(known.filter((changed) => changed === "everything").length).toBeGreaterThan(3);
    expect((await feed.read(positions[5])).changed).not.toBe("everything");

    await tidyChanges(engine, 1);
    await expect(
      feed.read(duringHold),
      "a position that an open transaction holds is never tidied away",
    ).resolves.toMatchObject({
      changed: expect.any(Array),
    });
    await client.query("COMMIT");
    expect(keyIdsOf(await feed.read(duringHold))).toEqual([held.id]);
    await tidyTo(1);
  });

  it("tells more changes than can be told one by one as everything, once", async () => {
    const { url, newReader } = await setUp();
    const feed = newReader();
    const { position } = await feed.read(undefined);
    const rows = "SELECT 'key', 'key_' || i, 'd' FROM generate_series(1, 10001) i";
    await query(url, `INSERT INTO changes (kind, target_id, digests) ${rows}`);
    const news = await feed.read(position);
    expect(news.changed).toBe("everything");
    expect((await feed.read(news.position)).changed).toEqual([]);
  });

  it("is unavailable while its table cannot be read, and goes on afterwards", async () => {
    const { url, newReader } = await setUp();
    const feed = newReader();
    const { position } = await feed.read(undefined);
    await query(url, "ALTER TABLE change_feed RENAME TO away");
    await expect(feed.read(position)).rejects.toThrow(Unavailable);
    await query(url, "ALTER TABLE away RENAME TO change_feed");
    expect((await feed.read(position)).changed).toEqual([]);
  });

  it("shows the lines for hand work in the operations guide", () => {
    const guide = readFileSync("docs/operations.md", "utf8");
    expect(guide).toContain("UPDATE change_feed SET epoch = CAST(random() AS text)");
    expect(guide).toContain("INSERT INTO changes (kind) VALUES ('everything')");
  });
});
