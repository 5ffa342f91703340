import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import type { SpentCounters, UsageEngine } from "../../../src/store/usage-ledger.ts";
import { sized } from "../../support/deep.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { behindUnreliableLink, chargedInAll, databaseWith, openLane, sendUntilAnswered } from "./lane-fixture.ts";

const keyIds = Array.from({ length: 40 }, (_, i) => `key_${i}`);
const remaining = 1_000_000;
const callers = 16;

/** What the callers spend: how often each of them, on which counters, at which cost. */
interface Load {
  readonly timesPerCaller: number;
  counters(index: number, i: number): SpentCounters;
  cost(i: number): number;
}

const keyAt = (n: number) => keyIds[n % keyIds.length] as string;
const singleUses: Load = {
  timesPerCaller: sized(80, 660),
  counters: (index, i) => [keyAt(index * 7 + i)],
  cost: () => 1,
};
/** Keys with one of two owners, or with none. */
const costsOfOwners: Load = {
  timesPerCaller: sized(60, 200),
  counters(index, i) {
    const key = 2 + ((index * 7 + i) % (keyIds.length - 2));
    return key % 3 === 2 ? [keyAt(key)] : [keyAt(key), keyAt(key % 3)];
  },
  cost: (i) => 1 + (i % 20),
};

interface Account {
  /** Units that callers were told are theirs, of all counters together. */
  readonly acknowledged: number;
  readonly unknown: number;
  /** Answers that were given more than once for one counter. */
  readonly doubled: number;
}

/** Costs spent by many callers at once, over counters that they share. */
async function spendMany(engine: UsageEngine, load: Load): Promise<Account> {
  const ledger = new CoalescingUsageLedger([engine], {
    clock: systemClock,
    metrics: createMetrics(),
    waitingRoom: new WaitingRoom(1000),
  });
  const seen = new Set<string>();
  const account = { acknowledged: 0, unknown: 0, doubled: 0 };
  const tell = (answer: string) => {
    if (seen.has(answer)) account.doubled++;
    seen.add(answer);
  };
  const caller = async (_: unknown, index: number) => {
    for (let i = 0; i < load.timesPerCaller; i++) {
      const counters = load.counters(index, i);
      const [own, shared] = counters;
      const units = load.cost(i) * counters.length;
      const spend = await ledger.spend(counters, load.cost(i)).catch(() => undefined);
      if (spend === undefined) account.unknown += units;
      else if (spend.outcome === "spent") {
        account.acknowledged += units;
        tell(`${own} ${spend.remaining}`);
        if (shared !== undefined) tell(`${shared} ${spend.sharedRemaining}`);
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return account;
}

/** An UPDATE for every key, sent again when no reply comes. */
function naiveEngine(url: string): UsageEngine {
  const send = sendUntilAnswered(url);
  const update = `UPDATE counters k SET remaining = k.remaining - u.wanted
    FROM unnest($1::text[], $2::int[]) AS u (subject, wanted) WHERE k.subject = u.subject RETURNING k.subject, k.remaining`;
  return {
    async settle(charges) {
      const values = [charges.map(({ subject: keyId }) => keyId), charges.map(({ count }) => count)];
      const { rows } = await send(update, values);
      const left = new Map(rows.map((row) => [row.subject, Number(row.remaining)]));
      return charges.map(({ subject: keyId, count }) => ({
        outcome: "settled",
        granted: count,
        remaining: left.get(keyId) as number,
      }));
    },
  };
}

describe.runIf(hasPostgres)("replies lost between the commit and the service", () => {
  it.each([
    { name: "uses", load: singleUses, unitsMin: sized(800, 10_000), cutsMin: sized(4, 40) },
    {
      name: "units of keys and their owners",
      load: costsOfOwners,
      unitsMin: sized(3000, 10_000),
      cutsMin: sized(3, 10),
    },
  ])("charge nothing twice, in more than $unitsMin $name", async ({ load, unitsMin, cutsMin }) => {
    const url = await databaseWith(keyIds, remaining);
    const link = await behindUnreliableLink(url);
    const account = await spendMany(openLane(link.url), load);
    const charged = await chargedInAll(url, keyIds.length, remaining);

    expect(link.proxy.cuts).toBeGreaterThan(cutsMin);
    expect(account.acknowledged).toBeGreaterThan(unitsMin);
    expect(account.doubled).toBe(0);
    expect(charged).toBeGreaterThanOrEqual(account.acknowledged);
    expect(charged).toBeLessThanOrEqual(account.acknowledged + account.unknown);
  });

  it("are caught by this very test when an engine simply tries again", async () => {
    const url = await databaseWith(keyIds, remaining);
    const link = await behindUnreliableLink(url);
    const account = await spendMany(naiveEngine(link.url), singleUses);
    const charged = await chargedInAll(url, keyIds.length, remaining);

    expect(link.proxy.cuts).toBeGreaterThan(sized(4, 40));
    expect(charged).toBeGreaterThan(account.acknowledged + account.unknown);
  });
});
