import { describe, expect, it } from "vitest";
import { StrictBook } from "../../support/strict/index.ts";

const limit = 3;
const durationMs = 1000;

/** A book that is told of answers as if they had come at these moments of one second. */
class Told extends StrictBook {
  readonly #clock: { ms: number };
  readonly #resetMs = Date.now() + durationMs;

  static begin(): Told {
    const clock = { ms: 0 };
    return new Told(clock);
  }

  private constructor(clock: { ms: number }) {
    super([{ limit, durationMs }], () => clock.ms);
    this.#clock = clock;
  }

  tell(outcome: "admitted" | "limited", remaining: number, given: { atMs?: number; replica?: number; later?: number }) {
    const { atMs = 0, replica = 0, later = 0 } = given;
    this.#clock.ms = atMs;
    this.end(this.begin(0, replica), { outcome, limit, remaining, resetMs: this.#resetMs + later });
    return this;
  }
}

function filled(): Told {
  return [2, 1, 0].reduce((book, remaining) => book.tell("admitted", remaining, { atMs: 1 }), Told.begin());
}

describe("the book of strict limits", () => {
  it("finds nothing wrong with a window that is used up and then refuses", () => {
    const book = filled().tell("limited", 0, { atMs: 100 }).tell("limited", 0, { atMs: 900 });
    expect(book.problems()).toEqual([]);
    expect(book.problemsWithFilling(0)).toEqual([]);
    expect(book.figures).toMatchObject({ windows: 1, filled: 1, over: 0, short: 0, refusingForLong: 1 });
  });

  it.each([
    ["more than the limit", filled().tell("admitted", 0, {}), "key 0: 4 passed in one window of 3"],
    ["a refusal that shows some left", filled().tell("limited", 1, {}), "key 0: 1 refused with 1 remaining"],
    [
      "numbers that rise",
      Told.begin().tell("admitted", 1, {}).tell("admitted", 2, { atMs: 5 }),
      "key 0: remaining rose from 1 to 2 on replica 0",
    ],
    [
      "windows too close together",
      filled().tell("admitted", 2, { later: -400 }),
      "key 0: windows of 1000 ms end 400 ms apart",
    ],
    ["an end that is too late", filled().tell("admitted", 2, { later: 3000 }), "before its window opened"],
    ["an end that is long past", filled().tell("admitted", 2, { later: -3000 }), "after its window had ended"],
  ])("tells of %s", (_, book, problem) => {
    expect(book.problems().join("\n")).toContain(problem);
  });

  it("reports a window that refused for long and was not used up, unless a replica may hold the rest", () => {
    const short = () => Told.begin().tell("admitted", 2, { atMs: 1 }).tell("limited", 0, { atMs: 100 });
    expect(short().tell("limited", 0, { atMs: 900 }).problemsWithFilling(9)).toEqual([
      "key 0: only 1 of 3 passed in a window that refused 2",
    ]);
    const held = short().tell("admitted", 1, { atMs: 50, replica: 1 }).tell("limited", 0, { atMs: 900 });
    expect(held.problemsWithFilling(1)).toEqual([]);
    expect(held.problemsWithFilling(0)).toEqual([
      "1 windows refused a request without being full, for 0 known reasons",
    ]);
  });
});
