import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../domain/seeded-random.ts";
import { accountFor, CrashLoad } from "../support/crash-load.ts";
import { isDeep, sized } from "../support/deep.ts";
import { Fleet } from "../support/fleet.ts";
import { PricedLoad } from "../support/priced-load.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const kills = sized(4, 30);
const pricedKills = sized(3, 10);
const uses = 100_000_000;

describe("a service that is killed while it is being used", () => {
  it(`loses no acknowledged use, key or deletion in ${kills} kills`, async () => {
    const load = new CrashLoad(tempFolder(), testRootKey);
    await load.start();
    await load.createCounted(uses);
    let { left } = await load.readCounter();
    let acknowledged = 0;
    for (let kill = 0; kill < kills; kill++) {
      // From the middle of the first commits to well into the load.
      const round = await load.runUntilKilled(10 + ((kill * 37) % 120));
      await load.start();
      const counter = await load.readCounter();
      expect(accountFor({ ...round, before: left, after: counter.found }).problems).toEqual([]);
      left = counter.left;
      acknowledged += round.acknowledged.length;
    }
    expect(new Set(load.values).size).toBe(load.values.length);
    expect(await load.wrongOtherKeys()).toEqual([]);
    // Otherwise there was hardly a load, and nothing has been shown.
    expect(acknowledged).toBeGreaterThan(kills * 20);
    for (const state of ["there", "deleted"]) {
      expect(load.otherKeys.filter((other) => other.state === state).length).toBeGreaterThan(sized(2, 5));
    }
  });

  it("takes every cost from a key and its owner, or from neither", async () => {
    const fleet = await Fleet.startEmbedded(tempFolder());
    const load = new PricedLoad(fleet, new SeededRandom(15));
    const plenty = { remaining: uses, keyRemaining: uses, keys: 3, costMax: 20 };
    await load.add({ ...plenty, ownerId: "a scarce owner", remaining: sized(200, 800) });
    await load.add({ ...plenty, ownerId: "scarce keys", keyRemaining: sized(60, 200), limits: { burst: uses } });
    for (let kill = 0; kill < pricedKills; kill++) {
      await load.during(32, async () => {
        await load.answered(sized(100, 30) + ((kill * 37) % 120));
        await fleet.kill(0);
      });
      await fleet.replace(0);
      expect(await load.problems()).toEqual([]);
    }
    for (const answer of ["VALID", "USAGE_EXCEEDED of owner", "USAGE_EXCEEDED of key"])
      expect(load.answers[answer], answer).toBeGreaterThan(20);
    expect(load.answers.unknown).toBeGreaterThan(20);
  });
});

// These are as they are at any size.
if (!isDeep) {
  describe("a service that is killed while it is being used", () => {
    it("would show a loss: data as of before the last uses", async () => {
      const folder = tempFolder();
      const [dataDir, copy] = [join(folder, "data"), join(folder, "copy")];
      const load = new CrashLoad(dataDir, testRootKey);
      await load.start();
      await load.createCounted(uses);
      const { left } = await load.readCounter();
      await load.kill();
      cpSync(dataDir, copy, { recursive: true });

      await load.start();
      const acknowledged = await load.use(20);
      await load.createOthers(3);
      await load.kill();
      rmSync(dataDir, { recursive: true });
      cpSync(copy, dataDir, { recursive: true });
      await load.start();

      const { found } = await load.readCounter();
      expect(accountFor({ before: left, after: found, acknowledged, unanswered: 0 })).toMatchObject({ lost: 20 });
      expect(new Set(load.values).size).toBeLessThan(load.values.length);
      expect(await load.wrongOtherKeys()).toHaveLength(3);
    });
  });

  describe("the account of a counter", () => {
    it.each([
      ["a loss", { before: 10, after: 9, acknowledged: [9, 8], unanswered: 5 }, /1 acknowledged uses were lost/],
      ["too many charges", { before: 10, after: 5, acknowledged: [9], unanswered: 3 }, /4 uses for 3 unanswered/],
      ["a value never used", { before: 10, after: 8, acknowledged: [9, 3], unanswered: 0 }, /outside/],
    ])("shows %s", (_, record, problem) => {
      expect(accountFor(record).problems).toContainEqual(expect.stringMatching(problem));
    });

    it("finds nothing where every use beyond the acknowledged had an unanswered call", () => {
      expect(accountFor({ before: 10, after: 6, acknowledged: [9, 7], unanswered: 2 }).problems).toEqual([]);
    });
  });
}
