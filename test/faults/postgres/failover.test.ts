import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { Fleet } from "../../support/fleet.ts";
import { FleetLoad } from "../../support/fleet-load.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { through } from "./lane-fixture.ts";

const standbyName = "standby1";
const replicas = 2;
const countedKeys = 6;

/** A primary with a standby, and replicas that reach whichever is the primary through one address. */
async function setUp(replication: "synchronous" | "asynchronous") {
  const primary = await PostgresServer.start();
  onTestFinished(() => primary.remove());
  const link = await FaultyProxy.start(primary.port);
  const standby = await PostgresServer.startStandbyOf(primary, standbyName, link.port);
  onTestFinished(() => standby.remove());
  if (replication === "synchronous") {
    await primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${standbyName}'`);
    primary.reload();
    await until(primary, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  }
  const address = await FaultyProxy.start(primary.port);
  const fleet = await Fleet.start(through(primary.url(), address.port), replicas);
  const load = await FleetLoad.create(fleet, countedKeys);
  return { primary, standby, link, address, fleet, load };
}

async function until(server: PostgresServer, condition: string): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    // A standby cancels queries that are in the way of what it applies.
    const found = await server.query(condition).catch(() => undefined);
    if (found?.rows.length === 1) return;
    await delay(50);
  }
  throw new Error(`it never came to: ${condition}`);
}

async function promote(standby: PostgresServer, address: FaultyProxy): Promise<void> {
  await standby.query("SELECT pg_promote(false)");
  await until(standby, "SELECT 1 WHERE NOT pg_is_in_recovery()");
  address.targetPort = standby.port;
  address.cutAll();
}

describe.runIf(hasPostgres)("a primary that is killed, and whose standby takes its place", () => {
  it("has lost no acknowledged use if the standby is synchronous, and the service heals by itself", async () => {
    const { primary, standby, address, fleet, load } = await setUp("synchronous");
    const { pids } = fleet;
    await load.during(async () => {
      await load.usesOnEach(200);
      await primary.kill();
      await promote(standby, address);
      await load.usesOnEach(50);
    });
    expect(await load.account(standby.url())).toEqual([]);
    expect(load.oddities).toEqual([]);
    expect(load.figures).toMatchObject({ lost: 0, doubled: 0, unanswered: 0 });
    expect(load.figures.acknowledged).toBeGreaterThan(replicas * 250 - 1);
    expect(fleet.pids).toEqual(pids);
  });

  it("would be seen to lose uses if the standby lagged and nobody waited for it", async () => {
    const { primary, standby, link, address, load } = await setUp("asynchronous");
    await load.during(async () => {
      await load.usesOnEach(50);
      link.onReply = () => "stall";
      await load.usesOnEach(100);
      await primary.kill();
      await promote(standby, address);
      await load.usesOnEach(100);
    });
    expect(await load.account(standby.url())).not.toEqual([]);
    expect(load.figures.doubled).toBeGreaterThan(100);
  });
});
