import { describe, expect, it } from "vitest";
import { queue, rule, setUpLimiter, takeNow } from "./limiter-fixture.ts";

const run = (cost: number, count = 1) => ({ cost, count });
const nothingElse = { contended: true };

describe("a verification that costs more than one permit", () => {
  it("takes all of them at once while they are held, and gives all of them back", async () => {
    const { limiter, channel } = setUpLimiter();
    const first = queue(limiter, "k", 3);
    expect(channel.sent).toMatchObject([{ waiting: [run(3)] }]);
    await channel.grant({ granted: 10, left: 90, outstanding: 10 });
    expect(first).toMatchObject({ said: "admitted", permit: { remaining: 97 } });
    const permit = takeNow(limiter, "k", 5);
    expect([permit.remaining, limiter.held]).toEqual([92, 2]);
    permit.release();
    expect(limiter.held).toBe(7);
    first.permit?.commit();
    limiter.recall("k");
    expect(channel.sent[1]).toMatchObject({ returned: 7, spent: 3 });
  });

  it("is asked for in order of arrival, and admitted first fit", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter, "k", 1);
    const waiting = [4, 4, 9, 2, 1].map((cost) => queue(limiter, "k", cost));
    await channel.grant({ granted: 1, left: 7, outstanding: 1 });
    expect(channel.sent[1]).toMatchObject({ waiting: [run(4, 2), run(9), run(2), run(1)] });
    await channel.grant({ granted: 7, left: 0, outstanding: 8, ...nothingElse });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "waits", "waits", "admitted", "admitted"]);
    expect(limiter.held).toBe(0);
  });

  it("is refused at once above the limit: nothing is asked, and no window is needed", () => {
    const { limiter, channel } = setUpLimiter({ poolsMax: 0 });
    const permit = takeNow(limiter, "k", rule.limit + 1);
    expect(permit).toMatchObject({ outcome: "limited", limit: rule.limit, remaining: rule.limit });
    permit.commit();
    expect(permit.release()).toMatchObject({ remaining: rule.limit });
    expect(channel.sent).toEqual([]);
  });

  it("is refused if the ledger's limit is lower than it, with a window or without one", async () => {
    const { limiter, channel, alarms } = setUpLimiter();
    const without = queue(limiter, "k", 50);
    await channel.grant({ gen: 0, left: 0, endsInMs: 0, endsAtMs: 0, limit: 20 });
    expect(without.said).toBe("limited");
    const small = queue(limiter);
    const large = queue(limiter, "k", 50);
    await channel.grant({ granted: 1, left: 19, outstanding: 8, limit: 20 });
    expect([small.said, large.said, alarms.unsettled]).toEqual(["admitted", "limited", 0]);
  });

  it("returns what is held while it waits, and is served by what comes back", async () => {
    const { limiter, channel } = setUpLimiter();
    const first = queue(limiter);
    await channel.grant({ granted: 4, left: 0, outstanding: 8, ...nothingElse });
    first.permit?.commit();
    const waiting = queue(limiter, "k", 6);
    expect(channel.sent[1]).toMatchObject({ waiting: [run(6)], returned: 3, spent: 1 });
    expect(limiter.held).toBe(0);
    await channel.grant({ granted: 6, left: 1, outstanding: 6, ...nothingElse });
    expect(waiting.said).toBe("admitted");
  });

  it("does not hold up a cheaper one: not in the ledger, not here, not by its pauses", async () => {
    const { limiter, channel } = setUpLimiter();
    const large = queue(limiter, "k", 50);
    await channel.grant({ granted: 0, left: 9, outstanding: 80 });
    expect([large.said, channel.underWay]).toEqual(["waits", 0]);
    const small = queue(limiter, "k", 2);
    expect(channel.sent[1]).toMatchObject({ waiting: [run(50), run(2)] });
    await channel.grant({ granted: 2, left: 7, outstanding: 82 });
    expect([large.said, small.said]).toEqual(["waits", "admitted"]);
  });

  it("is refused within the hold and two round trips while others hold permits; cheaper ones are still asked for", async () => {
    const { limiter, channel, pass, alarms } = setUpLimiter();
    const roundTripMs = 10;
    const large = queue(limiter, "k", 50);
    let waitedMs = 0;
    for (; large.said === "waits" && waitedMs < 400; waitedMs += 5) {
      if (channel.underWay > 0 && waitedMs % roundTripMs === 5) await channel.grant({ left: 9, outstanding: 80 });
      if (waitedMs === 20) queue(limiter);
      await pass(5);
    }
    expect(large).toMatchObject({ said: "limited", permit: { remaining: 9 } });
    expect(waitedMs).toBeLessThanOrEqual(50 + 3 * roundTripMs + 25);
    expect(alarms.unsettled).toBe(1);
    expect(takeNow(limiter, "k", 50)).toMatchObject({ outcome: "limited", remaining: 9 });
    expect(takeNow(limiter, "k", 10)).toMatchObject({ outcome: "limited", remaining: 9 });
    queue(limiter, "k", 9);
  });

  it("is refused from memory if it can never be had, and cheaper ones until they cannot be had either", async () => {
    const { limiter, channel, clock } = setUpLimiter();
    const large = queue(limiter, "k", 50);
    await channel.grant({ left: 9, outstanding: 0 });
    expect(large).toMatchObject({ said: "limited", permit: { remaining: 9 } });
    clock.advance(30_000);
    expect(takeNow(limiter, "k", 10).outcome).toBe("limited");
    const cheaper = queue(limiter, "k", 8);
    expect(channel.sent[1]).toMatchObject({ waiting: [run(8)] });
    await channel.grant({ granted: 8, left: 1, outstanding: 8, ...nothingElse });
    cheaper.permit?.commit();
    const [two, one] = [queue(limiter, "k", 2), queue(limiter)];
    await channel.grant({ granted: 0, left: 1, outstanding: 0, ...nothingElse });
    expect([two.said, one.said]).toEqual(["limited", "waits"]);
    await channel.grant({ granted: 1, left: 0, outstanding: 1, ...nothingElse });
    expect(one.said).toBe("admitted");
  });

  it("is no longer refused from memory when permits come back", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const large = queue(limiter, "k", 50);
    for (let ms = 0; large.said === "waits" && ms < 400; ms += 5) {
      if (channel.underWay > 0) await channel.grant({ left: 9, outstanding: 80 });
      await pass(5);
    }
    expect(takeNow(limiter, "k", 50).outcome).toBe("limited");
    queue(limiter);
    await channel.grant({ granted: 1, left: 60, outstanding: 20 });
    queue(limiter, "k", 50);
    expect(channel.sent.at(-1)).toMatchObject({ waiting: [run(50)] });
  });

  it("fails as unavailable only if the ledger has not said that it has too little", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const large = queue(limiter, "k", 50);
    await channel.grant({ left: 9, outstanding: 80 });
    const small = queue(limiter, "k", 3);
    await pass(460);
    expect(large).toMatchObject({ said: "limited", permit: { remaining: 9 } });
    expect(small.said).toBe("no permit came in time");
  });

  it("waits with many others, of which 100 runs are asked for at once", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter);
    const waiting = Array.from({ length: 95 }, (_, i) => queue(limiter, "k", 1 + (i % 2)));
    await channel.grant({ granted: 1, left: 9000 });
    expect(channel.sent[1]?.waiting).toEqual(Array.from({ length: 95 }, (_, i) => run(1 + (i % 2))));
    const more = Array.from({ length: 5 }, () => queue(limiter, "k", 3));
    await channel.grant({ granted: 47 + 48 + 47, left: 8000 });
    expect(waiting.every(({ said }) => said === "admitted")).toBe(true);
    expect(channel.sent[2]?.waiting).toEqual([run(3, 5)]);
    await channel.grant({ granted: 15, left: 7000 });
    expect(more.every(({ said }) => said === "admitted")).toBe(true);
  });
});
