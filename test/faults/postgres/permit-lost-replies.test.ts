import { describe, expect, it } from "vitest";
import type { PermitEngine } from "../../../src/store/permit-ledger.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { wantedBy } from "../../ratelimit/strict/asks.ts";
import { sized } from "../../support/deep.ts";
import { ones } from "../../support/ones.ts";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { behindUnreliableLink, databaseWithLimits, openPermitLane, sendUntilAnswered } from "./lane-fixture.ts";

// Apart from each other, so that a return applied twice cannot hide a permit granted twice.
const takers = Array.from({ length: 20 }, (_, i) => `taker_${i}`);
const givers = Array.from({ length: 20 }, (_, i) => `giver_${i}`);
const limit = 1_000_000;
const heldByGiver = 500_000;
const rounds = sized(80, 600);
const takenARound = 3;
const returnedARound = 2;

interface Account {
  acknowledgedRounds: number;
  unknownRounds: number;
  granted: number;
  /** Answers that were given more than once for one key. */
  doubled: number;
}

/** Takes from some keys and gives back to others, over and over; every key of one round goes in one batch. */
async function takeAndGive(engine: PermitEngine): Promise<Account> {
  const account = { acknowledgedRounds: 0, unknownRounds: 0, granted: 0, doubled: 0 };
  const seen = new Set<string>();
  const asks = [
    ...takers.map((subject) => ({ subject, ...permitAsk({ waiting: ones(takenARound) }) })),
    ...givers.map((subject) => ({ subject, ...permitAsk({ gen: 1, returned: returnedARound }) })),
  ];
  for (let round = 0; round < rounds; round++) {
    const results = await engine.exchange(asks).catch(() => undefined);
    if (results === undefined) account.unknownRounds++;
    else account.acknowledgedRounds++;
    results?.forEach((result, i) => {
      if (result.outcome !== "settled") throw new Error(`an ask is ${result.outcome}`);
      account.granted += result.granted;
      const answer = `${asks[i]?.subject} ${result.left}`;
      if (seen.has(answer)) account.doubled++;
      seen.add(answer);
    });
  }
  return account;
}

/** A database whose givers hold permits, and an unreliable link to it. */
async function setUp() {
  const url = await databaseWithLimits([...takers, ...givers], limit);
  const held = givers.map((subject) => ({ subject, ...permitAsk({ waiting: ones(heldByGiver) }) }));
  await openPermitLane(url, { timeoutMs: 20_000 }).exchange(held);
  return { url, link: await behindUnreliableLink(url) };
}

/** All permits that were granted and returned, as the ledger has them. */
async function ledgerOf(url: string): Promise<{ taken: number; returned: number }> {
  const granted = async (prefix: string) => {
    const { rows } = await query(
      url,
      `SELECT sum(granted)::int AS n FROM permit_windows WHERE subject LIKE '${prefix}%'`,
    );
    return rows[0].n as number;
  };
  return { taken: await granted("taker"), returned: givers.length * heldByGiver - (await granted("giver")) };
}

/** An UPDATE, sent again when no reply comes. */
function naiveEngine(url: string): PermitEngine {
  const send = sendUntilAnswered(url);
  const update = `UPDATE permit_windows p SET granted = p.granted + u.wanted - u.returned, gen = 1
    FROM unnest($1::text[], $2::int[], $3::int[]) AS u (subject, wanted, returned) WHERE p.subject = u.subject RETURNING p.*`;
  return {
    async exchange(asks) {
      await send(update, [asks.map((ask) => ask.subject), asks.map(wantedBy), asks.map((ask) => ask.returned)]);
      const time = { endsInMs: 1, endsAtMs: 1, durationMs: 1, clockBehind: false };
      const grant = { gen: 1, left: 0, outstanding: 0, ...time, contended: false, limit };
      return asks.map((ask) => ({ outcome: "settled", ...grant, granted: wantedBy(ask) }));
    },
  };
}

describe.runIf(hasPostgres)("replies of the permit ledger lost between the commit and the service", () => {
  it("grant nothing twice and take nothing back twice", async () => {
    const { url, link } = await setUp();
    const account = await takeAndGive(openPermitLane(link.url));
    const { taken, returned } = await ledgerOf(url);

    expect(link.proxy.cuts).toBeGreaterThan(sized(4, 40));
    expect(account.acknowledgedRounds).toBeGreaterThan(rounds / 2);
    expect(account.doubled).toBe(0);
    expect(account.granted).toBe(account.acknowledgedRounds * takers.length * takenARound);
    const roundsOf = (permits: number, aRound: number) => permits / aRound / takers.length;
    for (const applied of [roundsOf(taken, takenARound), roundsOf(returned, returnedARound)]) {
      expect(applied).toBeGreaterThanOrEqual(account.acknowledgedRounds);
      expect(applied).toBeLessThanOrEqual(account.acknowledgedRounds + account.unknownRounds);
    }
  });

  it("are caught by this very test when an engine simply asks again", async () => {
    const { url, link } = await setUp();
    const account = await takeAndGive(naiveEngine(link.url));
    const { taken, returned } = await ledgerOf(url);

    expect(link.proxy.cuts).toBeGreaterThan(sized(4, 40));
    const told = account.acknowledgedRounds + account.unknownRounds;
    expect(taken).toBeGreaterThan(told * takers.length * takenARound);
    expect(returned).toBeGreaterThan(told * givers.length * returnedARound);
  });
});
