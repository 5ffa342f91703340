import { describe, expect, it } from "vitest";
import type { SubjectAsk } from "../../../src/store/permit-ledger.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { ones } from "../../support/ones.ts";
import { askFor, settledWith, wantedBy } from "./asks.ts";
import { setUpCoordinator as setUp } from "./coordinator-fixture.ts";

describe("an inspection", () => {
  it("asks for nothing, counts as no holder, and leaves what its replica holds as it was", async () => {
    const answer = (ask: SubjectAsk) => settledWith({ granted: wantedBy(ask), outstanding: 5 });
    const { engine, members } = setUp({ answer });
    void members[0].exchange("k", askFor({ waiting: ones(5) }));
    await nextTurn();
    await engine.finish();
    const inspected = members[0].inspect("k");
    await nextTurn();
    await engine.finish();
    expect(engine.batches[1]).toEqual([{ subject: "k", ...askFor({ holders: 0 }) }]);
    expect(await inspected).toMatchObject({ granted: 0, outstanding: 5 });
    // Its own replica too.
    expect(members.map(({ recalls }) => recalls)).toEqual([["k"], [], []]);
    void members[1].inspect("k");
    await nextTurn();
    await engine.finish();
    expect(members.map(({ recalls }) => recalls)).toEqual([["k", "k"], [], []]);
  });

  it("shares a statement with asks, and gets none of their permits", async () => {
    const { engine, members } = setUp({ answer: (ask) => settledWith({ granted: wantedBy(ask), left: 3 }) });
    const answers = Promise.all([members[1].inspect("k"), members[0].exchange("k", askFor({ waiting: ones(2) }))]);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([[{ subject: "k", ...askFor({ waiting: ones(2) }) }]]);
    expect(await answers).toMatchObject([
      { granted: 0, left: 3 },
      { granted: 2, left: 3 },
    ]);
  });
});
