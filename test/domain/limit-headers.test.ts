import { describe, expect, it } from "vitest";
import { limitHeaders } from "../../src/domain/limit-headers.ts";

const nowMs = 1_000_000;
const limit = (name: string, remaining: number, secondsLeft = 30) => {
  return { name, limit: 100, remaining, reset: nowMs + secondsLeft * 1000, duration: 60_000 };
};

describe("the headers about limits", () => {
  it.each([
    ["no limits", { ratelimits: [] }],
    ["an owner without limits", { owner: { ratelimits: [] } }],
    ["a counter that is not refilled", { reason: { check: "counter", of: "key" } }],
  ])("are none with %s", (_, answer) => {
    expect(limitHeaders(answer, nowMs)).toBeUndefined();
  });

  it("name the limit that has refused first, and no name twice", () => {
    const headers = limitHeaders(
      {
        ratelimit: limit("", 5),
        ratelimits: [limit("minute", 7)],
        owner: { ratelimits: [limit("day", 9), limit("minute", 0, 17.2)] },
        reason: { check: "limit", of: "owner", name: "minute" },
      },
      nowMs,
    );
    expect(headers).toEqual({
      ratelimit: '"minute";r=0;t=18, "default";r=5;t=30, "day";r=9;t=30',
      "ratelimit-policy": '"minute";q=100;w=60, "default";q=100;w=60, "day";q=100;w=60',
      "retry-after": "18",
    });
  });

  it("tell a limit that is named default from the one without a name", () => {
    const answer = { ratelimit: limit("", 5), ratelimits: [limit("default", 0, 3)] };
    const reason = { check: "limit", of: "key", name: "default" };
    expect(limitHeaders({ ...answer, reason }, nowMs)).toMatchObject({ ratelimit: '"default";r=0;t=3' });
    expect(limitHeaders(answer, nowMs)).toMatchObject({ ratelimit: '"default";r=5;t=30' });
  });

  it("say when to come again where a counter is refilled, never less than a second", () => {
    const reason = { check: "counter", of: "key", nextRefillAt: nowMs + 3_600_000 };
    expect(limitHeaders({ reason }, nowMs)).toEqual({ "retry-after": "3600" });
    expect(limitHeaders({ reason }, nowMs + 3_600_000)).toEqual({ "retry-after": "1" });
  });

  it("stay short, however many limits and however long their names", () => {
    const named = (letter: string) => Array.from({ length: 8 }, (_, i) => limit(`${i}`.padStart(64, letter), 1));
    const headers = limitHeaders({ ratelimits: named("a"), owner: { ratelimits: named("b") } }, nowMs);
    for (const list of Object.values(headers ?? {})) {
      expect(list.length).toBeLessThanOrEqual(250);
      expect(list.split(", ").length).toBeGreaterThan(1);
    }
  });

  it("name the same limits in the same order, also where one of the two lists is full before the other", () => {
    const long = (letter: string) => letter.repeat(64);
    const ratelimits = [
      limit(long("a"), 1),
      limit(long("b"), 1),
      { ...limit("costly", 1), limit: 10 ** 15, duration: 10 ** 15 },
      limit(long("c"), 1),
      limit("d", 1),
    ];
    const { ratelimit, "ratelimit-policy": policy } = limitHeaders({ ratelimits }, nowMs) ?? {};
    const namesOf = (list = "") => Array.from(list.matchAll(/"(.+?)"/g), ([, name]) => name);
    expect(namesOf(ratelimit)).toEqual([long("a"), long("b"), "costly"]);
    expect(namesOf(policy)).toEqual(namesOf(ratelimit));
  });

  it("say when to come again by the limit that has refused, or not at all if the answer does not have it", () => {
    const ratelimits = [limit("minute", 5)];
    const reason = { check: "limit", of: "key", name: "hour" };
    expect(limitHeaders({ ratelimits, reason }, nowMs)).toEqual({
      ratelimit: '"minute";r=5;t=30',
      "ratelimit-policy": '"minute";q=100;w=60',
    });
  });
});
