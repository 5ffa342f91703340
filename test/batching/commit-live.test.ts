import { describe, expect, it } from "vitest";
import { commitLive, type LiveGroup } from "../../src/batching/commit-live.ts";

const isLive = (item: string) => !item.startsWith("dead");
const notExecuted = "not executed";

/** A group of each key with these items. */
function groupsOf(itemsOf: Record<string, readonly string[]>) {
  return Object.entries(itemsOf).map(([subject, items]) => ({ subject, callers: items.map((item) => ({ item })) }));
}

/** Commits the live items of these groups. Answers the results, and what was committed. */
async function commit(itemsOf: Record<string, readonly string[]>) {
  const commits: (readonly LiveGroup<string>[])[] = [];
  const settle = async (live: readonly LiveGroup<string>[]) => {
    commits.push(live);
    return live.map(({ subject }) => `result of ${subject}`);
  };
  return { results: await commitLive(groupsOf(itemsOf), isLive, settle, notExecuted), commits };
}

describe("a batch of which callers have given up", () => {
  it("is committed as it is if none has", async () => {
    const { results, commits } = await commit({ a: ["1", "2"], b: ["3"] });
    expect(commits).toEqual([
      [
        { subject: "a", items: ["1", "2"] },
        { subject: "b", items: ["3"] },
      ],
    ]);
    expect(results).toEqual(["result of a", "result of b"]);
  });

  it("is committed without the items that were given up, in order, and each group gets its own result", async () => {
    const { results, commits } = await commit({
      a: ["dead 1"],
      b: ["2", "dead 3", "4"],
      c: ["dead 5", "dead 6"],
      d: ["dead 7", "8"],
      e: ["dead 9"],
    });
    expect(commits).toEqual([
      [
        { subject: "b", items: ["2", "4"] },
        { subject: "d", items: ["8"] },
      ],
    ]);
    expect(results).toEqual([notExecuted, "result of b", notExecuted, "result of d", notExecuted]);
  });

  it("is not committed at all if all have", async () => {
    const { results, commits } = await commit({ a: ["dead 1", "dead 2"], b: ["dead 3"] });
    expect([results, commits]).toEqual([[notExecuted, notExecuted], []]);
  });

  it.each([0, 1, 3])("fails as a whole if a commit of two groups has %s results", async (count) => {
    const settle = async () => Array<string>(count).fill("result");
    const groups = groupsOf({ a: ["1"], b: ["dead 2"], c: ["3"] });
    await expect(commitLive(groups, isLive, settle, notExecuted)).rejects.toThrow(`${count} results for 2 subjects`);
  });

  it("fails as its commit does", async () => {
    const settle = () => Promise.reject(new Error("away"));
    await expect(commitLive(groupsOf({ a: ["1"] }), isLive, settle, notExecuted)).rejects.toThrow("away");
  });
});
