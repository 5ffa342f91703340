import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import type { UsageEngine } from "../../../src/store/usage-ledger.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { behindUnreliableLink, chargedInAll, databaseWith, openLane, sendUntilAnswered } from "./lane-fixture.ts";

const keyIds = Array.from({ length: 40 }, (_, i) => `key_${i}`);
const remaining = 1_000_000;
const callers = 16;
const usesPerCaller = 660;

interface Account {
  readonly acknowledged: number;
  readonly unknown: number;
  /** Answers that were given more than once for one key. */
  readonly doubled: number;
}

/** Uses spent by many callers at once, over keys that they share. */
async function spendMany(engine: UsageEngine): Promise<Account> {
  const ledger = new CoalescingUsageLedger([engine], {
    clock: systemClock,
    metrics: createMetrics(),
    waitingRoom: new WaitingRoom(1000),
  });
  const seen = new Set<string>();
  const account = { acknowledged: 0, unknown: 0, doubled: 0 };
  const caller = async (_: unknown, index: number) => {
    for (let i = 0; i < usesPerCaller; i++) {
      const keyId = keyIds[(index * 7 + i) % keyIds.length] as string;
      const spend = await ledger.spend([keyId], 1).catch(() => undefined);
      if (spend === undefined) account.unknown++;
      else if (spend.outcome === "spent") {
        account.acknowledged++;
        const answer = `${keyId} ${spend.remaining}`;
        if (seen.has(answer)) account.doubled++;
        seen.add(answer);
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
  it("charge nothing twice, in more than 10 000 uses", async () => {
    const url = await databaseWith(keyIds, remaining);
    const link = await behindUnreliableLink(url);
    const account = await spendMany(openLane(link.url));
    const charged = await chargedInAll(url, keyIds.length, remaining);

    expect(link.proxy.cuts).toBeGreaterThan(40);
    expect(account.acknowledged).toBeGreaterThan(10_000);
    expect(account.doubled).toBe(0);
    expect(charged).toBeGreaterThanOrEqual(account.acknowledged);
    expect(charged).toBeLessThanOrEqual(account.acknowledged + account.unknown);
  });

  it("are caught by this very test when an engine simply tries again", async () => {
    const url = await databaseWith(keyIds, remaining);
    const link = await behindUnreliableLink(url);
    const account = await spendMany(naiveEngine(link.url));
    const charged = await chargedInAll(url, keyIds.length, remaining);

    expect(link.proxy.cuts).toBeGreaterThan(40);
    expect(charged).toBeGreaterThan(account.acknowledged + account.unknown);
  });
});
