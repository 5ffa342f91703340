import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { grantRuns } from "../../src/domain/cost-runs.ts";
import { exchangePermits, type PermitAsk, type PermitWindow } from "../../src/domain/permit-window.ts";
import { ones } from "../support/ones.ts";

const durationMs = 1000;
const count = fc.nat(40);
const anyWindow: fc.Arbitrary<PermitWindow> = fc
  .record({ granted: count, part: fc.nat(40), contended: fc.boolean(), isBehind: fc.boolean(), isOver: fc.boolean() })
  .map(({ granted, part, contended, isBehind, isOver }) => ({
    gen: 1,
    endsAtMs: isBehind ? 10 * durationMs : isOver ? 0 : durationMs,
    durationMs,
    clampedEndsAtMs: 0,
    granted,
    spent: Math.min(part, granted),
    contended,
  }));
const anyAsk = fc.record({ inAdvance: count, gen: fc.nat(2), returned: count, spent: count, holders: fc.nat(4) });
const anyRuns = fc.array(fc.record({ cost: fc.integer({ min: 1, max: 20 }), count: fc.integer({ min: 1, max: 4 }) }), {
  maxLength: 6,
});

/** How permits were granted before requests had costs. */
function grantedWithoutCosts(wanted: number, ask: PermitAsk, available: number, takesInAdvance: boolean): number {
  const share = 2 * Math.max(1, ask.holders);
  const inAdvance = takesInAdvance ? Math.min(wanted + ask.inAdvance, Math.floor(available / share)) : 0;
  return Math.min(available, Math.max(0, wanted, inAdvance));
}

describe("the permit ledger", () => {
  it("is changed by no ask of nobody for nothing, also if few permits are left under a lowered limit", () => {
    const open = {
      gen: 3,
      endsAtMs: durationMs,
      durationMs,
      clampedEndsAtMs: 0,
      granted: 7,
      spent: 2,
      contended: false,
    };
    const ask = { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 0 };
    for (const window of [open, { ...open, granted: 10 }, { ...open, endsAtMs: 0 }])
      for (const limit of [8, 10, 20])
        expect(exchangePermits(window, ask, { limit, durationMs }, 0).window).toEqual(window);
    expect(exchangePermits(open, { ...ask, holders: 1 }, { limit: 8, durationMs }, 0).window.contended).toBe(true);
  });

  it("grants requests of cost 1 what it granted before there were costs, however they are written as runs", () => {
    fc.assert(
      fc.property(
        anyWindow,
        anyAsk,
        fc.array(count),
        fc.integer({ min: 1, max: 60 }),
        (before, given, counts, limit) => {
          const ask = { ...given, waiting: counts.flatMap(ones) };
          const wanted = counts.reduce((sum, each) => sum + each, 0);
          const { window, grant } = exchangePermits(before, ask, { limit, durationMs }, 0);
          const available = grant.granted + grant.left;
          const wasContended = window.gen === before.gen && before.contended;
          expect(grant.granted).toBe(grantedWithoutCosts(wanted, ask, available, !wasContended && !grant.clockBehind));
          expect(window.gen - before.gen).toBe(before.endsAtMs === 0 && wanted > 0 ? 1 : 0);
        },
      ),
    );
  });

  it("grants whole costs, first fit, and in advance only if no request waits in vain", () => {
    fc.assert(
      fc.property(anyWindow, anyAsk, anyRuns, fc.integer({ min: 1, max: 60 }), (before, given, waiting, limit) => {
        const { window, grant } = exchangePermits(before, { ...given, waiting }, { limit, durationMs }, 0);
        const served = grantRuns(grant.granted + grant.left, waiting);
        const units = waiting.reduce((sum, { cost }, i) => sum + cost * (served[i] as number), 0);
        const isEachServed = waiting.every((run, i) => served[i] === run.count);
        if (!isEachServed || (before.contended && window.gen === before.gen)) expect(grant.granted).toBe(units);
        expect(grant.granted).toBeGreaterThanOrEqual(units);
        expect(window.granted).toBeLessThanOrEqual(Math.max(limit, before.granted));
        // Whoever splits what was granted finds the same.
        expect(grantRuns(grant.granted, waiting)).toEqual(served);
      }),
    );
  });
});
