import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { PgPool } from "../../../src/store/postgres/pg-pool.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { through } from "../../faults/postgres/lane-fixture.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { query } from "../../support/run-statement.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

const connectionsMax = 5;
const ping = { text: "SELECT pg_backend_pid() AS pid", values: [] };
const timeouts = { waitMs: 20_000, queryMs: 20_000 };

function openPool(url: string): PgPool {
  const pool = new PgPool({ servers: new PgServers(url), connectionsMax });
  onTestFinished(() => pool.close());
  return pool;
}

/** The server processes of the pool's connections. */
async function pidsOf(url: string): Promise<number[]> {
  const text = `SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'latchkey' AND pid <> pg_backend_pid() ORDER BY pid`;
  return (await query(url, text)).rows.map(({ pid }) => pid as number);
}

describe.runIf(hasPostgres)("the pool", () => {
  it("opens all its connections after the first query, and uses each of them", async () => {
    const url = await createEmptyDatabase();
    const pool = openPool(url);
    expect(await pidsOf(url)).toEqual([]);
    await pool.query(ping, timeouts);
    await expect.poll(() => pidsOf(url)).toHaveLength(connectionsMax);
    const used = new Set<unknown>();
    for (let i = 0; i < connectionsMax; i++) used.add((await pool.query(ping, timeouts)).rows[0]?.pid);
    expect([...used].toSorted()).toEqual((await pidsOf(url)).toSorted());
  });

  it("replaces connections that are lost, one or all, and a query meanwhile is answered", async () => {
    const url = await createEmptyDatabase();
    const pool = openPool(url);
    await pool.query(ping, timeouts);
    for (const lost of [1, connectionsMax]) {
      await expect.poll(() => pidsOf(url)).toHaveLength(connectionsMax);
      // Nothing is under way any more that opens what is missing.
      await delay(500);
      const before = await pidsOf(url);
      const ended = before.slice(0, lost);
      await query(url, `SELECT pg_terminate_backend(pid) FROM unnest(ARRAY[${ended}]) AS pid`);
      expect((await pool.query(ping, timeouts)).rows).toHaveLength(1);
      await expect
        .poll(async () => (await pidsOf(url)).filter((pid) => !ended.includes(pid)).length)
        .toBe(connectionsMax);
    }
    expect(await pidsOf(url)).toHaveLength(connectionsMax);
  });

  it("gives queries back the error of a database that is down, and finds it when it is back", async () => {
    const url = await createEmptyDatabase();
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const pool = openPool(through(url, proxy.port));
    await pool.query(ping, timeouts);
    proxy.refusing = true;
    proxy.cutAll();
    await expect(pool.query(ping, timeouts)).rejects.toThrow("the database did not answer");
    proxy.refusing = false;
    await expect.poll(() => pool.query(ping, timeouts).then(({ rows }) => rows.length, String)).toBe(1);
    await expect.poll(() => pidsOf(url)).toHaveLength(connectionsMax);
  });
});

describe("a pool whose database does not answer", () => {
  it("tries one connection at a time, with a pause, however many queries wait", async () => {
    let attempts = 0;
    let underWay = 0;
    let most = 0;
    const down = net.createServer((socket) => {
      attempts++;
      most = Math.max(most, ++underWay);
      socket.on("close", () => underWay--).on("error", () => {});
      setTimeout(() => socket.destroy(), 20);
    });
    await new Promise<void>((resolve) => down.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void down.close());
    const pool = openPool(`postgres://nobody@127.0.0.1:${(down.address() as net.AddressInfo).port}/none`);
    const startedMs = performance.now();
    while (attempts < 4) {
      const asked = Array.from({ length: 20 }, () => pool.query(ping, timeouts).catch((error: Error) => error.message));
      expect(new Set(await Promise.all(asked))).toEqual(new Set(["the database did not answer"]));
      await delay(1);
    }
    expect(most).toBe(1);
    // Four attempts have three pauses between them.
    expect(performance.now() - startedMs).toBeGreaterThan(3 * 100);
  });
});
