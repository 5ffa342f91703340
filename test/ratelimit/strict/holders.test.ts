import { beforeEach, describe, expect, it } from "vitest";
import { Holders, type Member } from "../../../src/ratelimit/coordinator/holders.ts";
import { ones } from "../../support/ones.ts";
import { askFor } from "./asks.ts";

const [a, b, c] = ["a", "b", "c"].map((): Member => ({ onRecall: () => {}, isGone: false })) as [
  Member,
  Member,
  Member,
];
let holders: Holders;
beforeEach(() => {
  holders = new Holders();
});

describe("Holders", () => {
  it("count the replicas that asked in this window and those that ask now, each once", () => {
    expect(holders.count("k", [a])).toBe(1);
    holders.note("k", a, 1, askFor({ waiting: ones(1) }), 5);
    holders.note("k", b, 1, askFor({ waiting: ones(1) }), 0);
    expect(holders.count("k", [])).toBe(2);
    expect(holders.count("k", [a, b, c])).toBe(3);
    expect(holders.count("another", [c])).toBe(1);
  });

  it("name as others only the replicas that hold permits", () => {
    holders.note("k", a, 1, askFor({ waiting: ones(1) }), 5);
    holders.note("k", b, 1, askFor({ waiting: ones(1) }), 0);
    holders.note("k", c, 1, askFor({ waiting: ones(1) }), 2);
    expect(holders.others("k", [])).toEqual([a, c]);
    expect(holders.others("k", [c])).toEqual([a]);
    expect(holders.others("another", [])).toEqual([]);
  });

  it("subtract returned and spent permits, and never go below 0", () => {
    holders.note("k", a, 1, askFor({ waiting: ones(5) }), 5);
    holders.note("k", a, 1, askFor({ gen: 1, returned: 2, spent: 2 }), 0);
    expect(holders.others("k", [])).toEqual([a]);
    holders.note("k", a, 1, askFor({ gen: 1, spent: 9 }), 0);
    expect(holders.others("k", [])).toEqual([]);
    holders.note("k", a, 1, askFor({ gen: 1, waiting: ones(1) }), 1);
    expect(holders.others("k", [])).toEqual([a]);
  });

  it("forget all permits with a new window", () => {
    holders.note("k", a, 1, askFor({ waiting: ones(5) }), 5);
    holders.note("k", b, 2, askFor({ gen: 1, waiting: ones(1) }), 1);
    expect(holders.others("k", [])).toEqual([b]);
    expect(holders.count("k", [])).toBe(1);
  });

  it("forget a deleted key, and a replica that is gone", () => {
    for (const subject of ["k", "l"]) for (const member of [a, b]) holders.note(subject, member, 1, askFor({}), 1);
    holders.forget("k");
    holders.leave(a);
    expect([holders.others("k", []), holders.others("l", [])]).toEqual([[], [b]]);
  });

  it("remember a bounded number of keys: those used last", () => {
    for (let i = 0; i <= 100_000; i++) {
      holders.note(`key ${i}`, a, 1, askFor({}), 1);
      if (i === 500) holders.note("key 0", a, 1, askFor({}), 1);
    }
    expect(holders.others("key 0", [])).toEqual([a]);
    expect(holders.others("key 1", [])).toEqual([]);
    expect(holders.others("key 2", [])).toEqual([a]);
  });
});
