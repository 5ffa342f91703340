import { describe, expect, it } from "vitest";
import { counterOfOwner, limitOfOwner } from "../../../src/domain/subject.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { sized } from "../../support/deep.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { Fleet } from "../../support/fleet.ts";
import { PricedLoad } from "../../support/priced-load.ts";
import { query } from "../../support/run-statement.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { through } from "./lane-fixture.ts";

const callers = 96;
const kills = sized(1, 2);
/** What is scarce is used up by fewer answers in the smaller form. */
const scarce = (full: number) => sized(Math.round(full / 5), full);
const many = 1_000_000;
const costMax = 20;
const refusals = ["USAGE_EXCEEDED of owner", "USAGE_EXCEEDED of key", "RATE_LIMITED of owner", "RATE_LIMITED of key"];

describe.runIf(hasPostgres)(`three replicas, ${callers} callers, keys and owners with counters and limits`, () => {
  it("account for every cost through kills and lost replies, and fill windows", async () => {
    const url = await createTestDatabase();
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    let replies = 0;
    const cutSome: FaultyProxy["onReply"] = ({ bytesFromServer }) =>
      // A connection must be able to begin.
      bytesFromServer > 1500 && ++replies % 12 === 0 ? "cut" : "pass";
    const fleet = await Fleet.start(through(url, proxy.port), 3);
    const random = new SeededRandom(15);
    const load = new PricedLoad(fleet, random);
    const plenty = { remaining: many, keyRemaining: many, keys: 3, costMax };
    await load.add({ ...plenty, ownerId: "a scarce owner", remaining: scarce(1000) });
    await load.add({ ...plenty, ownerId: "scarce keys", keyRemaining: scarce(300) });
    await load.add({ ownerId: "only the owner counts", keys: 2, remaining: many, costMax });
    await load.add({
      ...plenty,
      ownerId: "limited",
      limits: { burst: scarce(600), day: many },
      keyLimits: { burst: many },
    });
    await load.add({ ...plenty, ownerId: "limited keys", limits: { burst: many }, keyLimits: { burst: scarce(150) } });

    for (let kill = 0; kill < kills; kill++) {
      const victim = kill % fleet.size;
      await load.during(callers, async () => {
        proxy.onReply = cutSome;
        await load.answered(sized(300, 1200));
        // However many calls that takes: on a busy machine some have no answer.
        while (refusals.some((refusal) => (load.answers[refusal] ?? 0) <= 20)) await load.answered(50);
        await fleet.kill(victim);
        await load.answered(sized(200, 400));
        proxy.onReply = () => "pass";
      });
      await fleet.replace(victim);
      expect(await load.problems()).toEqual([]);
    }
    console.log(JSON.stringify(load.answers), `${proxy.cuts} replies cut`);
    // Otherwise nothing has been shown.
    for (const answer of ["VALID", ...refusals]) expect(load.answers[answer], answer).toBeGreaterThan(20);
    expect(load.answers.unknown).toBeGreaterThan(5);
    expect(proxy.cuts).toBeGreaterThan(5);

    // The control: a unit that only the owner has paid is noticed.
    await query(
      url,
      `UPDATE counters SET remaining = remaining - 1 WHERE subject = '${counterOfOwner("scarce keys")}'`,
    );
    expect(await load.problems()).toContainEqual(expect.stringContaining("and its keys"));

    const filling = new PricedLoad(fleet, random);
    await filling.add({ ownerId: "ones", keys: 3, limits: { burst: scarce(300) }, costMax: 1 });
    await filling.add({ ownerId: "mixed", keys: 3, limits: { burst: scarce(300) }, costMax });
    await filling.during(callers, async () => {
      while (filling.refused < sized(100, 500)) await filling.answered(100);
    });
    // Whatever of it nobody was told of may have been used.
    const [ones, mixed] = [
      filling.leftIn(limitOfOwner("ones", "burst")),
      filling.leftIn(limitOfOwner("mixed", "burst")),
    ];
    for (const { atMost } of [ones, mixed]) expect(atMost).toBeGreaterThanOrEqual(0);
    expect(ones.atLeast).toBeLessThanOrEqual(0);
    expect(mixed.atLeast).toBeLessThan(costMax);
  });
});
