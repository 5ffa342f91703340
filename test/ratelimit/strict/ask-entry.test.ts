import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { AskEntry } from "../../../src/ratelimit/coordinator/ask-entry.ts";
import { Holders, type Member } from "../../../src/ratelimit/coordinator/holders.ts";
import { notExecuted, type PermitAnswer } from "../../../src/ratelimit/permit-channel.ts";
import { ones } from "../../support/ones.ts";
import { askFor, settledWith, wantedBy } from "./asks.ts";

const never = Number.POSITIVE_INFINITY;
const member = (isGone = false): Member => ({ onRecall: () => {}, isGone });

/** An entry in which asks of these replicas wait, each with a place. */
function entryOf(asks: readonly { member: Member; expiresAtMs?: number; returned?: number }[]) {
  const deps = { holders: new Holders(), places: new WaitingRoom(1000), metrics: createMetrics() };
  const entry = new AskEntry("k", "k", deps);
  const answers = asks.map(({ member, expiresAtMs = never, returned = 0 }) => {
    deps.places.enter(0);
    return entry.join(member, askFor({ waiting: ones(2), gen: 1, returned }), expiresAtMs);
  });
  return { entry, answers, ...deps };
}

describe("the entry of a subject's asks", () => {
  it("has places for its asks until they are settled, and no longer for those that are not executed", async () => {
    const { entry, answers, places } = entryOf([
      { member: member(), expiresAtMs: 99 },
      { member: member() },
      { member: member(true) },
      { member: member(true), returned: 3 },
    ]);
    expect([entry.close(100), places.taken]).toEqual([true, 2]);
    const merged = entry.merge();
    expect([wantedBy(merged), merged.returned]).toEqual([2, 3]);
    entry.resolve(settledWith({ granted: 2 }));
    expect(places.taken).toBe(0);
    const granted = (answer: PermitAnswer) => (answer.outcome === "settled" ? answer.granted : answer);
    expect((await Promise.all(answers)).map(granted)).toEqual([notExecuted, 2, notExecuted, 0]);
  });

  it("is wanted by nobody if none of its asks is executed", () => {
    const { entry, places } = entryOf([{ member: member(), expiresAtMs: 99 }, { member: member(true) }]);
    expect([entry.close(100), places.taken]).toEqual([false, 0]);
  });

  it.each([{ outcome: "missing" }, { outcome: "failed", reason: "a bad row" }] as const)(
    "gives its places back when it is $outcome",
    async (result) => {
      const { entry, answers, places } = entryOf([{ member: member() }, { member: member() }]);
      entry.close(0);
      entry.resolve(result);
      expect([places.taken, await Promise.all(answers)]).toEqual([0, [result, result]]);
    },
  );

  it("gives its places back once also if a recall throws, and its asks keep what was granted", async () => {
    const holder: Member = {
      onRecall() {
        throw new Error("the stream is broken");
      },
      isGone: false,
    };
    const { entry, answers, holders, places } = entryOf([{ member: member() }]);
    holders.note("k", holder, 1, askFor({}), 5);
    entry.close(0);
    entry.merge();
    expect(() => entry.resolve(settledWith({ granted: 0, left: 0, outstanding: 5 }))).toThrow("broken");
    // As the batcher does.
    entry.reject(new Error("the stream is broken"));
    expect([places.taken, await Promise.all(answers)]).toMatchObject([0, [{ outcome: "settled", granted: 0 }]]);
  });
});
