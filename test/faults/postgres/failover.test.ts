import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { Fleet } from "../../support/fleet.ts";
import { FleetLoad } from "../../support/fleet-load.ts";
import { PricedLoad } from "../../support/priced-load.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { hasPostgres } from "../../support/test-database.ts";

const replicas = 2;
const countedKeys = 6;

/** A primary with a standby, and replicas that reach the current primary through one address. */
async function setUp(replication: "synchronous" | "asynchronous") {
  const pair = await StandbyPair.start(replication);
  const fleet = await Fleet.start(pair.url, replicas);
  const load = await FleetLoad.create(fleet, countedKeys);
  const priced = new PricedLoad(fleet, new SeededRandom(15));
  await priced.add({ ownerId: "acme", keys: 2, remaining: 1_000_000, keyRemaining: 1_000_000, costMax: 20 });
  return { pair, fleet, load, priced };
}

describe.runIf(hasPostgres)("a primary that is killed, and whose standby takes its place", () => {
  it("has lost no acknowledged use if the standby is synchronous, and the service heals by itself", async () => {
    const { pair, fleet, load, priced } = await setUp("synchronous");
    const { pids } = fleet;
    const failOver = () =>
      load.during(async () => {
        await load.usesOnEach(sized(60, 200));
        await pair.primary.kill();
        await pair.promote();
        await load.usesOnEach(sized(20, 50));
      });
    await priced.during(16, failOver);
    expect(await priced.problems()).toEqual([]);
    expect(priced.answers.VALID).toBeGreaterThan(sized(50, 200));
    expect(await load.account(pair.standby.url())).toEqual([]);
    expect(load.oddities).toEqual([]);
    expect(load.figures).toMatchObject({ lost: 0, doubled: 0, unanswered: 0 });
    expect(load.figures.acknowledged).toBeGreaterThan(replicas * sized(80, 250) - 1);
    expect(fleet.pids).toEqual(pids);
  });

  if (isDeep) {
    it("would be seen to lose uses if the standby lagged and commits did not wait for it", async () => {
      const { pair, load, priced } = await setUp("asynchronous");
      const failOver = () =>
        load.during(async () => {
          await load.usesOnEach(50);
          pair.link.onReply = () => "stall";
          await load.usesOnEach(100);
          await pair.primary.kill();
          await pair.promote();
          await load.usesOnEach(100);
        });
      await priced.during(16, failOver);
      expect(await priced.problems()).toContainEqual(expect.stringContaining("has lost"));
      expect(await load.account(pair.standby.url())).not.toEqual([]);
      expect(load.figures.doubled).toBeGreaterThan(100);
    });
  }
});
