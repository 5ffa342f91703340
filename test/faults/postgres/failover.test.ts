import { describe, expect, it } from "vitest";
import { Fleet } from "../../support/fleet.ts";
import { FleetLoad } from "../../support/fleet-load.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { hasPostgres } from "../../support/test-database.ts";

const replicas = 2;
const countedKeys = 6;

/** A primary with a standby, and replicas that reach the current primary through one address. */
async function setUp(replication: "synchronous" | "asynchronous") {
  const pair = await StandbyPair.start(replication);
  const fleet = await Fleet.start(pair.url, replicas);
  const load = await FleetLoad.create(fleet, countedKeys);
  return { pair, fleet, load };
}

describe.runIf(hasPostgres)("a primary that is killed, and whose standby takes its place", () => {
  it("has lost no acknowledged use if the standby is synchronous, and the service heals by itself", async () => {
    const { pair, fleet, load } = await setUp("synchronous");
    const { pids } = fleet;
    await load.during(async () => {
      await load.usesOnEach(200);
      await pair.primary.kill();
      await pair.promote();
      await load.usesOnEach(50);
    });
    expect(await load.account(pair.standby.url())).toEqual([]);
    expect(load.oddities).toEqual([]);
    expect(load.figures).toMatchObject({ lost: 0, doubled: 0, unanswered: 0 });
    expect(load.figures.acknowledged).toBeGreaterThan(replicas * 250 - 1);
    expect(fleet.pids).toEqual(pids);
  });

  it("would be seen to lose uses if the standby lagged and commits did not wait for it", async () => {
    const { pair, load } = await setUp("asynchronous");
    await load.during(async () => {
      await load.usesOnEach(50);
      pair.link.onReply = () => "stall";
      await load.usesOnEach(100);
      await pair.primary.kill();
      await pair.promote();
      await load.usesOnEach(100);
    });
    expect(await load.account(pair.standby.url())).not.toEqual([]);
    expect(load.figures.doubled).toBeGreaterThan(100);
  });
});
