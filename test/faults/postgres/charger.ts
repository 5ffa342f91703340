// A process that charges counters without end and notes what it asks and what it is told: for a test that kills it.
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { UsageLane } from "../../../src/store/postgres/usage-lane.ts";
import {
  type Charge,
  type ChargeResult,
  type SpentCounters,
  sharedBalance,
  type UsageEngine,
} from "../../../src/store/usage-ledger.ts";

const [url = "", noteFile = "", isApart = ""] = process.argv.slice(2);
const counters: readonly SpentCounters[] = [
  ["k1", "o1"],
  ["k4", "o2"],
  ["k2", "o1"],
  ["k6"],
  ["k3", "o1"],
  ["k5", "o2"],
];
const callers = 32;

// Written to a file, not to a pipe: nothing of it is lost when the process is killed.
const notes = openSync(noteFile, "w");
const note = (line: string) => writeSync(notes, `${line}\n`);
const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
const engineOf = () =>
  isApart ? apartEngine() : new UsageLane({ ...ambient, servers: new PgServers(url), timeoutMs: 1000 });
const ledger = new CoalescingUsageLedger([engineOf(), engineOf()], { ...ambient, waitingRoom: new WaitingRoom(1000) });

let asked = 0;
async function charge(caller: number): Promise<never> {
  for (let i = 0; ; i++) {
    const charged = counters[(caller + i) % counters.length] as SpentCounters;
    const cost = 1 + ((caller * 5 + i * 3) % 20);
    const number = ++asked;
    note(`ask ${number} ${cost} ${charged.join(" ")}`);
    try {
      const spend = await ledger.spend(charged, cost);
      note(`${"lacking" in spend ? spend.lacking : spend.outcome} ${number}`);
    } catch {
      note(`unknown ${number}`);
      await delay(10);
    }
  }
}
/** The naive engine: it charges the key, and then the owner. */
function apartEngine(): UsageEngine {
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, query_timeout: 500 });
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  let connected = connect();
  const take = async (client: pg.Client, subject: string, units: number) => {
    const text =
      "UPDATE counters SET remaining = remaining - $2 WHERE subject = $1 AND remaining >= $2 RETURNING remaining";
    return (await client.query(text, [subject, units])).rows[0]?.remaining as number | undefined;
  };
  const settleOne = async ({ subject, shared, cost, count }: Charge): Promise<ChargeResult> => {
    const client = await connected;
    const remaining = await take(client, subject, cost * count);
    const left = shared === undefined ? undefined : await take(client, shared, cost * count);
    const granted = remaining === undefined || (shared !== undefined && left === undefined) ? 0 : count;
    return {
      outcome: "settled",
      granted,
      remaining: Number(remaining ?? 0),
      ...sharedBalance(shared === undefined ? undefined : Number(left ?? 0)),
    };
  };
  return {
    async settle(charges) {
      try {
        const results: ChargeResult[] = [];
        for (const charge of charges) results.push(await settleOne(charge));
        return results;
      } catch (error) {
        connected = connect();
        throw error;
      }
    },
  };
}

await Promise.all(Array.from({ length: callers }, (_, caller) => charge(caller)));
