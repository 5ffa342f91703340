import { describe, expect, it } from "vitest";
import { ones } from "../../support/ones.ts";
import { queue, setUpLimiter } from "./limiter-fixture.ts";

describe("an answer that is overdue", () => {
  it("lets a second message go another way, and is still taken when it comes", async () => {
    const { limiter, channel } = setUpLimiter();
    const waiting = [queue(limiter), queue(limiter), queue(limiter)];
    channel.overdue();
    expect(channel.sent).toMatchObject([{ waiting: ones(1) }, { waiting: ones(3) }]);
    await channel.grant({ granted: 2, outstanding: 2 });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "admitted", "waits"]);
    await channel.grant({ granted: 1, outstanding: 3 });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "admitted", "admitted"]);
  });

  it("never sends its return again", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter);
    await channel.grant({ granted: 4 });
    limiter.recall("k");
    expect(channel.sent[1]).toMatchObject({ returned: 3 });
    channel.overdue();
    queue(limiter);
    expect(channel.sent.slice(2)).toMatchObject([{ waiting: ones(1), returned: 0 }]);
  });
});

describe("permits that other replicas hold until a request has waited for long enough", () => {
  const heldElsewhere = { granted: 0, left: 0, outstanding: 5, endsInMs: 400, endsAtMs: 1_700_000_000_000 };

  it("refuse it, also if their window has ended since; one that has heard of no shortage stays undecided", async () => {
    const { limiter, channel, alarms, pass } = setUpLimiter();
    const early = queue(limiter);
    await pass(300);
    await channel.grant(heldElsewhere);
    await pass(5);
    const late = queue(limiter);
    await pass(155);
    expect([early.said, late.said, alarms.unsettled]).toEqual(["limited", "waits", 1]);
    expect(early.permit).toMatchObject({ remaining: 0, resetMs: heldElsewhere.endsAtMs });
    await pass(300);
    expect(late.said).toBe("no permit came in time");
  });

  it("let nothing rise that a refused request was shown, when they come back", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const refused = queue(limiter);
    await channel.grant({ ...heldElsewhere, endsInMs: 60_000 });
    await pass(460);
    expect([refused.said, refused.permit?.remaining]).toEqual(["limited", 0]);
    const next = queue(limiter);
    await channel.grant({ ...heldElsewhere, granted: 1, left: 4, outstanding: 1, endsInMs: 59_000 });
    expect([next.said, next.permit?.remaining]).toEqual(["admitted", 0]);
  });

  it("do not show requests that they serve in the end a smaller rest of the window", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const waiting = queue(limiter);
    await channel.grant({ ...heldElsewhere, endsInMs: 60_000 });
    await pass(30);
    await channel.grant({ granted: 1, left: 4, outstanding: 1 });
    expect([waiting.said, waiting.permit?.remaining]).toEqual(["admitted", 4]);
  });

  it("refuse no request by a limit that was changed meanwhile", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const waiting = queue(limiter);
    await channel.grant(heldElsewhere);
    limiter.holderChanged("k");
    await pass(460);
    expect(waiting.said).toBe("no permit came in time");
  });
});

describe("an ask that was not executed", () => {
  it("leaves its permits here, which serve waiting requests, and is followed by another a little later", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const first = queue(limiter);
    await channel.grant({ granted: 4, left: 0 });
    first.permit?.commit();
    limiter.recall("k");
    expect(channel.sent[1]).toMatchObject({ returned: 3, spent: 1 });
    const waiting = queue(limiter);
    await channel.answer({ outcome: "notExecuted" });
    expect([waiting.said, limiter.held]).toEqual(["admitted", 2]);
    limiter.recall("k");
    await pass(60);
    expect(channel.sent.slice(2)).toMatchObject([{ returned: 2, spent: 1 }]);
  });
});
