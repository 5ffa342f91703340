import { describe, expect, it } from "vitest";
import type { Permit } from "../../../src/ratelimit/limiter.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { queue, setUpLimiter, takeNow } from "./limiter-fixture.ts";

describe("a permit", () => {
  it("whose use was refused serves a waiting request", async () => {
    const { limiter, channel } = setUpLimiter();
    const waiting = [queue(limiter), queue(limiter)];
    await channel.grant({ granted: 1, outstanding: 1 });
    expect(waiting[1]?.said).toBe("waits");
    waiting[0]?.permit?.release();
    await nextTurn();
    expect(waiting[1]?.said).toBe("admitted");
  });

  it("whose use was refused stays here when no request waits, and is worth nothing in a later window", async () => {
    const { limiter, channel, clock } = setUpLimiter();
    const { permit } = await admitted();
    permit.release();
    expect(limiter.held).toBe(1);
    const late = takeNow(limiter);
    clock.advance(60_000);
    const next = queue(limiter);
    await channel.grant({ gen: 2, granted: 1 });
    late.release();
    expect([next.said, limiter.held]).toEqual(["admitted", 0]);

    async function admitted() {
      const waiting = queue(limiter);
      await channel.grant({ granted: 1 });
      return waiting as { permit: Permit };
    }
  });

  it("is reported as spent once its use is charged, once, and not before", async () => {
    const { limiter, channel } = setUpLimiter();
    const waiting = [queue(limiter), queue(limiter), queue(limiter)];
    await channel.grant({ granted: 1 });
    await channel.grant({ granted: 5 });
    waiting[0]?.permit?.commit();
    waiting[2]?.permit?.commit();
    limiter.recall("k");
    expect(channel.sent[2]).toMatchObject({ gen: 1, spent: 2, returned: 3 });
    await channel.grant({ contended: true });
    waiting[1]?.permit?.commit();
    limiter.recall("k");
    expect(channel.sent[3]).toMatchObject({ spent: 1, returned: 0 });
  });

  it("goes back when it is recalled, and at most once", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter);
    await channel.grant({ granted: 8 });
    limiter.recall("k");
    limiter.recall("k");
    limiter.recall("never heard of");
    expect(limiter.held).toBe(0);
    expect(channel.sent.slice(1)).toMatchObject([{ gen: 1, returned: 7, waiting: [] }]);
  });

  it("goes back by itself when no request came for it", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    queue(limiter).permit?.commit();
    await channel.grant({ granted: 8 });
    await pass(2000);
    expect(channel.sent.slice(1)[0]).toMatchObject({ waiting: [] });
    expect(limiter.held).toBeLessThan(4);
  });
});
