import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { PgConnection, type PgConnectionOptions } from "../../../src/store/postgres/pg-connection.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { PgSocket } from "../../../src/store/postgres/pg-socket.ts";
import { deadlineIn } from "../../support/deadline-in.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { startSilentAddress } from "../../support/silent-address.ts";
import { hasPostgres } from "../../support/test-database.ts";

const whichPort = { text: "SELECT current_setting('port')::int AS port", values: [] };
const sleep = { text: "SELECT pg_sleep(60)", values: [] };
/** The end of a hang. */
const withinMs = 60_000;
/** What users are promised, at full size. */
const soonMs = sized(withinMs, 1000);
/** Shorter than in earnest, where only waiting is tested. */
const searchMs = 300;

/** A URL that names all of these ports. */
function urlOf(...ports: readonly number[]): string {
  return `postgres://latchkey@${ports.map((port) => `127.0.0.1:${port}`).join(",")}/postgres`;
}

function connect(servers: PgServers, options: PgConnectionOptions = {}): PgConnection {
  const connection = new PgConnection(servers, options);
  onTestFinished(() => connection.close());
  return connection;
}

/** The port of the server that answers. */
async function portOf(connection: PgConnection): Promise<number> {
  const { rows } = await connection.run(whichPort, deadlineIn(withinMs));
  return rows[0]?.port as number;
}

// One after the other, on the same two servers: first the standby is one, then it has taken over.
describe.runIf(hasPostgres)("of several servers in DATABASE_URL", () => {
  let [first, second]: PostgresServer[] = [];
  const servers = () => ({ first: first as PostgresServer, second: second as PostgresServer });
  beforeAll(async () => {
    first = await PostgresServer.start();
    second = await PostgresServer.startStandbyOf(first, "standby1");
  });
  afterAll(() => Promise.all([first?.remove(), second?.remove()]));

  if (!isDeep) {
    it("the primary is used, wherever it stands in the list", async () => {
      const { first, second } = servers();
      for (const ports of [
        [first.port, second.port],
        [second.port, first.port],
      ]) {
        expect(await portOf(connect(new PgServers(urlOf(...ports))))).toBe(first.port);
      }
    });

    it("a standby is not used, and the error tells about each server, without its address", async () => {
      const { second } = servers();
      const { port: deadPort } = await startSilentAddress();
      const refused = connect(new PgServers(urlOf(1, second.port))).ready();
      await expect(refused).rejects.toThrow(/^no server is the primary: ECONNREFUSED, a standby$/);
      const unanswered = connect(new PgServers(urlOf(deadPort, second.port), searchMs)).ready();
      await expect(unanswered).rejects.toThrow(/^no server is the primary: (no answer|ETIMEDOUT), a standby$/);
    });
  }

  const held = sized(
    "does not keep the primary from being found",
    "holds up the primary once, and for no longer than a search",
  );
  it(`a server that says nothing ${held}`, async () => {
    const { first } = servers();
    const { port: deadPort } = await startSilentAddress();
    const both = new PgServers(urlOf(deadPort, first.port), searchMs);
    expect(await portOf(connect(both))).toBe(first.port);
    const startedMs = performance.now();
    expect(await portOf(connect(both))).toBe(first.port);
    expect(performance.now() - startedMs).toBeLessThan(soonMs);
  });

  if (!isDeep) {
    it("a wrong password on all of them is told as such", async () => {
      const { first, second } = servers();
      const url = urlOf(first.port, second.port).replace("latchkey@", "nobody:x@");
      await expect(connect(new PgServers(url)).ready()).rejects.toMatchObject({ code: "28000" });
    });

    it("the one that takes over is used from then on, also if the old primary still answers and comes back", async () => {
      const { first, second } = servers();
      const both = new PgServers(urlOf(first.port, second.port));
      const kept = connect(both, { keepOpen: true });
      const [idle, busy] = [connect(both), connect(both)];
      for (const connection of [kept, idle, busy]) expect(await portOf(connection)).toBe(first.port);

      // Both accept writes now. A statement without an answer is what a process notices of it.
      await second.query("SELECT pg_promote()");
      const hanging = expect(busy.run(sleep, deadlineIn(withinMs))).rejects.toThrow("Connection terminated");
      await expect(kept.run(sleep, deadlineIn(50))).rejects.toThrow("no reply in time");
      kept.discard();
      await vi.waitFor(async () => expect(await portOf(kept)).toBe(second.port), { timeout: withinMs });
      // Their connections to the old primary were open all the time, and nothing was wrong with them.
      await hanging;
      for (const connection of [idle, busy]) expect(await portOf(connection)).toBe(second.port);

      // A process that starts now finds the same one, also if the old one answers sooner.
      const far = await FaultyProxy.start(second.port);
      far.delayMs = 50;
      expect(await portOf(connect(new PgServers(urlOf(first.port, far.port))))).toBe(second.port);

      // While the new one is away, the old one is no substitute.
      await second.stop();
      await expect(kept.ready()).rejects.toThrow();
      await vi.waitFor(
        () => expect(kept.ready()).rejects.toThrow("a primary whose standby has taken over, ECONNREFUSED"),
        { timeout: withinMs },
      );
      await second.up();
      await vi.waitFor(async () => expect(await portOf(kept)).toBe(second.port), { timeout: withinMs });
    });
  }
});

describe.runIf(hasPostgres)("a primary that is lost without a word", () => {
  const soon = sized(
    "once its standby is promoted",
    "as soon as its standby is promoted, not when the attempts to reach it end",
  );
  it(`is replaced ${soon}`, async () => {
    const first = await PostgresServer.start();
    onTestFinished(() => first.remove());
    const second = await PostgresServer.startStandbyOf(first, "standby1");
    onTestFinished(() => second.remove());
    const open = async (options: PgConnectionOptions) => {
      const servers = new PgServers(urlOf(first.port, second.port));
      const connection = connect(servers, { keepOpen: true, ...options });
      expect(await portOf(connection)).toBe(first.port);
      return connection;
    };
    const connecting = await open({});
    const searching = await open({ createSocket: () => new PgSocket({ stepMs: 100 }) });

    // Its port takes connections and never answers, as one behind a lost network.
    first.pause();
    for (const connection of [searching, connecting]) {
      await expect(connection.run(whichPort, deadlineIn(50))).rejects.toThrow("no reply in time");
      connection.discard();
    }
    // One has given up on the old primary and searches. The other still tries to connect to it, for two seconds.
    await expect(searching.ready()).rejects.toThrow();
    await expect(searching.ready(deadlineIn(100))).rejects.toThrow("no connection in time");
    await second.query("SELECT pg_promote()");
    const promotedMs = performance.now();
    for (const connection of [searching, connecting]) {
      await vi.waitFor(async () => expect(await portOf(connection)).toBe(second.port), { timeout: withinMs });
    }
    expect(performance.now() - promotedMs).toBeLessThan(soonMs);
    first.resume();
  });
});
