import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Spend } from "../../src/domain/verification.ts";
import type { ChargeOutcome, SettledCharge } from "../../src/store/usage-ledger.ts";
import { nextTurn } from "../batching/next-turn.ts";

/** A ledger on an engine that answers when told to, with these balances. Keys without one are missing. */
import { setUp } from "./usage-ledger-fixture.ts";

const spent = (remaining: number) => ({ outcome: "spent", remaining });
const exhausted = (remaining: number) => ({ outcome: "exhausted", remaining });
const rejected = (reason: Error) => ({ status: "rejected", reason });

describe("a charge for several uses", () => {
  const never = Number.POSITIVE_INFINITY;
  const uses = (count: number) => ({ cost: 1, count });
  const settled = (granted: number, remaining: number) => ({ outcome: "settled", granted, remaining });
  const notExecuted = { outcome: "notExecuted" };

  it("shares one commit with other charges and single uses of the counter, which get their parts in order", async () => {
    const { engine, ledger } = setUp({ k: 100 });
    const answers = Promise.all([
      ledger.charge("k", uses(3), never),
      ledger.spend(["k"], 1),
      ledger.charge("k", uses(10), never),
      ledger.spend(["k"], 1),
      ledger.charge("k", uses(1), never),
    ]);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([[{ subject: "k", cost: 1, count: 16 }]]);
    expect(await answers).toEqual([settled(3, 97), spent(96), settled(10, 86), spent(85), settled(1, 84)]);
  });

  it("gets what is left when it is too little: those who came first get theirs, and the others nothing", async () => {
    const { engine, ledger } = setUp({ k: 6 });
    const answers = Promise.all([
      ledger.charge("k", uses(3), never),
      ledger.spend(["k"], 1),
      ledger.charge("k", uses(4), never),
      ledger.spend(["k"], 1),
      ledger.charge("k", uses(2), never),
    ]);
    await nextTurn();
    await engine.finish();
    expect(await answers).toEqual([settled(3, 3), spent(2), settled(2, 0), exhausted(0), settled(0, 0)]);
  });

  it("that came too late is not executed, and the others of its key are", async () => {
    const { engine, ledger, clock } = setUp({ k: 6 });
    const first = ledger.spend(["k"], 1);
    await nextTurn();
    const nowMs = clock.monotonicMs();
    const answers = Promise.all([
      ledger.charge("k", uses(2), nowMs + 999),
      ledger.charge("k", uses(3), nowMs + 1000),
      ledger.spend(["k"], 1),
      ledger.charge("k", uses(4), nowMs + 500),
      ledger.charge("k", uses(5), never),
    ]);
    // Those wait behind the first commit, which takes a second.
    clock.advance(1000);
    await engine.finish();
    await engine.finish();
    expect(engine.batches[1]).toEqual([{ subject: "k", cost: 1, count: 9 }]);
    expect(await first).toEqual(spent(5));
    expect(await answers).toEqual([notExecuted, settled(3, 2), spent(1), notExecuted, settled(1, 0)]);
  });

  it("is not executed in a batch that came too late as a whole: nothing is committed", async () => {
    const { engine, ledger, clock } = setUp({ a: 6, b: 6 });
    const first = ledger.spend(["a"], 1);
    await nextTurn();
    const late = Promise.all([
      ledger.charge("a", uses(2), clock.monotonicMs()),
      ledger.charge("b", uses(1), clock.monotonicMs()),
    ]);
    clock.advance(1);
    await engine.finish();
    expect(await late).toEqual([notExecuted, notExecuted]);
    expect([await first, engine.batches.length]).toEqual([spent(5), 1]);
  });

  it("for a key without a counter is missing", async () => {
    const { engine, ledger } = setUp({});
    const missing = ledger.charge("gone", uses(2), never);
    await nextTurn();
    await engine.finish();
    expect(await missing).toEqual({ outcome: "missing" });
  });

  it("whose commit has an unknown outcome rejects with Unavailable", async () => {
    const { engine, ledger } = setUp({ k: 5 });
    const unknown = Promise.allSettled([ledger.charge("k", uses(2), never), ledger.spend(["k"], 1)]);
    await nextTurn();
    const away = new Unavailable("away");
    await engine.fail(away);
    expect(await unknown).toEqual([rejected(away), rejected(away)]);
  });

  it("is granted never more than it wanted and all together never more than there is, with any timing", async () => {
    const charge = fc.record({ wanted: fc.integer({ min: 1, max: 9 }), aliveMs: fc.constantFrom(0, 5, never) });
    const step = fc.oneof(charge, fc.constantFrom("spend", "turn", "finish", "pass"));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.nat(60), async (steps, balance) => {
        const balances = { k: balance };
        const { engine, ledger, clock } = setUp(balances);
        /** In the order in which they came: how much each wanted, and got. */
        const calls: { wanted: number; got: Promise<Spend | ChargeOutcome> }[] = [];
        for (const each of steps) {
          if (typeof each !== "string") {
            const expiresAtMs = clock.monotonicMs() + each.aliveMs;
            calls.push({ wanted: each.wanted, got: ledger.charge("k", uses(each.wanted), expiresAtMs) });
          } else if (each === "spend") calls.push({ wanted: 1, got: ledger.spend(["k"], 1) });
          else if (each === "pass") clock.advance(3);
          else if (each === "finish" && engine.underWay > 0) await engine.finish();
          else await nextTurn();
        }
        await nextTurn();
        while (engine.underWay > 0) await engine.finish();
        let left = balance;
        for (const { wanted, got } of calls) {
          const answer = await got;
          if (answer.outcome === "notExecuted") continue;
          const { granted = answer.outcome === "spent" ? 1 : 0, remaining } = answer as Partial<SettledCharge>;
          expect(granted).toBe(Math.min(wanted, left));
          left -= granted;
          expect(remaining).toBe(left);
        }
        expect(left).toBe(balances.k);
      }),
    );
  });
});
