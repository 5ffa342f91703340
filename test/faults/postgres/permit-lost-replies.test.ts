import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import type { KeyedPermitAsk, PermitEngine, PermitResult } from "../../../src/store/permit-ledger.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { databaseWithLimits, openPermitLane, through } from "./lane-fixture.ts";

// Apart from each other, so that a return applied twice cannot hide a permit granted twice.
const takers = Array.from({ length: 20 }, (_, i) => `taker_${i}`);
const givers = Array.from({ length: 20 }, (_, i) => `giver_${i}`);
const limit = 1_000_000;
const heldByGiver = 500_000;
const rounds = 600;
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
    ...takers.map((keyId) => ({ keyId, ...permitAsk({ wantMin: takenARound }) })),
    ...givers.map((keyId) => ({ keyId, ...permitAsk({ gen: 1, returned: returnedARound }) })),
  ];
  for (let round = 0; round < rounds; round++) {
    const results = await engine.exchange(asks).catch(() => undefined);
    if (results === undefined) account.unknownRounds++;
    else account.acknowledgedRounds++;
    results?.forEach((result, i) => {
      if (result.outcome !== "settled") throw new Error(`an ask is ${result.outcome}`);
      account.granted += result.granted;
      const answer = `${asks[i]?.keyId} ${result.left}`;
      if (seen.has(answer)) account.doubled++;
      seen.add(answer);
    });
  }
  return account;
}

/** A database whose givers hold permits, and a link to it that cuts one reply in ten and stalls now and then. */
async function behindUnreliableLink() {
  const url = await databaseWithLimits([...takers, ...givers], limit);
  const held = givers.map((keyId) => ({ keyId, ...permitAsk({ wantMin: heldByGiver }) }));
  await openPermitLane(url, { timeoutMs: 20_000 }).exchange(held);
  const proxy = await FaultyProxy.start(Number(new URL(url).port));
  let replies = 0;
  proxy.onReply = ({ bytesFromServer }) => {
    // A connection must be able to begin.
    if (bytesFromServer < 1500) return "pass";
    replies++;
    if (replies % 10 === 0) return "cut";
    return replies % 97 === 0 ? "stall" : "pass";
  };
  return { url, proxy, throughLink: through(url, proxy.port) };
}

/** What has been taken and given back in all, by the ledger. */
async function ledgerOf(url: string): Promise<{ taken: number; returned: number }> {
  const granted = async (prefix: string) => {
    const { rows } = await query(url, `SELECT sum(granted)::int AS n FROM key_permits WHERE key_id LIKE '${prefix}%'`);
    return rows[0].n as number;
  };
  return { taken: await granted("taker"), returned: givers.length * heldByGiver - (await granted("giver")) };
}

/** What one would write first: an UPDATE, sent again when no reply comes. */
function naiveEngine(url: string): PermitEngine {
  let client: pg.Client | undefined;
  const connected = async () => {
    if (client !== undefined) return client;
    const fresh = new pg.Client({ connectionString: url, query_timeout: 200 });
    fresh.on("error", () => {});
    await fresh.connect();
    client = fresh;
    return fresh;
  };
  const update = `UPDATE key_permits p SET granted = p.granted + u.wanted - u.returned, gen = 1
    FROM unnest($1::text[], $2::int[], $3::int[]) AS u (key_id, wanted, returned) WHERE p.key_id = u.key_id RETURNING p.*`;
  const exchange = async (asks: readonly KeyedPermitAsk[]): Promise<readonly PermitResult[]> => {
    const values = [asks.map((ask) => ask.keyId), asks.map((ask) => ask.wantMin), asks.map((ask) => ask.returned)];
    for (;;) {
      try {
        await (await connected()).query(update, values);
        const time = { endsInMs: 1, endsAtMs: 1, durationMs: 1, clockBehind: false };
        const grant = { gen: 1, left: 0, outstanding: 0, ...time, contended: false, limit };
        return asks.map(({ wantMin }) => ({ outcome: "settled", ...grant, granted: wantMin }));
      } catch {
        client?.end().catch(() => {});
        client = undefined;
      }
    }
  };
  onTestFinished(() => void client?.end().catch(() => {}));
  return { exchange };
}

describe.runIf(hasPostgres)("replies of the permit ledger lost between the commit and the service", () => {
  it("grant nothing twice and take nothing back twice", async () => {
    const { url, proxy, throughLink } = await behindUnreliableLink();
    const account = await takeAndGive(openPermitLane(throughLink));
    const { taken, returned } = await ledgerOf(url);

    expect(proxy.cuts).toBeGreaterThan(40);
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
    const { url, proxy, throughLink } = await behindUnreliableLink();
    const account = await takeAndGive(naiveEngine(throughLink));
    const { taken, returned } = await ledgerOf(url);

    expect(proxy.cuts).toBeGreaterThan(40);
    const told = account.acknowledgedRounds + account.unknownRounds;
    expect(taken).toBeGreaterThan(told * takers.length * takenARound);
    expect(returned).toBeGreaterThan(told * givers.length * returnedARound);
  });
});
