import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { exchangeSteps } from "../../../src/store/postgres/exchange-statement.ts";
import { beginText, guardedText } from "../../../src/store/postgres/guarded-statement.ts";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { databaseWithLimits } from "./lane-fixture.ts";

const limit = 10;
/** Longer than any row is held here. */
const lockRule = { lockMs: 20_000 };
const exchangeText = guardedText(exchangeSteps, lockRule);

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  onTestFinished(() => client.end());
  await client.connect();
  return client;
}

/** Runs the statement once, under a writer of its own: five permits of the one key are wanted, the rest is as it is. */
async function askWith(client: pg.Client, text: string): Promise<{ gen: number; granted: number } | undefined> {
  const writer = `writer ${Math.random()}`;
  await client.query(beginText(lockRule), [writer]);
  const asked = [["k"], [0], [0], [0], [1], [5], [5]];
  const { rows } = await client.query(text, [writer, 1, "nonce", null, ...asked]);
  const kept = rows[0].result?.[0];
  return kept && { gen: kept[1], granted: kept[2] };
}

/**
 * Opens the key's window, then lets the statement wait for its row behind a transaction that does something and commits.
 * Answers what the statement came to. `whileItWaits` is done by that transaction when the statement has begun to wait.
 */
async function askBehind(text: string, change: string, whileItWaits = "SELECT 1") {
  const url = await databaseWithLimits(["k"], limit);
  const [asker, holder] = [await connect(url), await connect(url)];
  expect(await askWith(asker, exchangeText)).toEqual({ gen: 1, granted: 5 });
  await holder.query(`BEGIN; ${change}; SELECT * FROM permit_windows WHERE subject = 'k' FOR UPDATE`);
  const answer = askWith(asker, text);
  const waiting =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  while ((await query(url, waiting)).rows[0].n === 0) await delay(10);
  await holder.query(`${whileItWaits}; COMMIT`);
  return answer;
}

/** The window ends at this moment: after the statement has begun, before it gets the row. */
const ending =
  "UPDATE permit_windows SET ends_at_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE subject = 'k'";

/** The statement with one thing changed, which it must contain. */
function broken(from: string, to: string): string {
  expect(exchangeText).toContain(from);
  return exchangeText.replaceAll(from, to);
}

const lowering = (lowered: number) =>
  `UPDATE keys SET ratelimit_limit = ${lowered} WHERE id = 'k';
   UPDATE permit_windows SET rule_limit = ${lowered} WHERE subject = 'k'`;

describe.runIf(hasPostgres)("a statement of the permit ledger that waited for a row", () => {
  it("uses the time at which it got the row: a window that ended meanwhile grants no more", async () => {
    expect(await askBehind(exchangeText, "SELECT 1", ending)).toEqual({ gen: 2, granted: 5 });
  });

  it("would use a window that has ended if it used the time at which it began", async () => {
    const stale = broken("clock_timestamp()", "statement_timestamp()");
    expect(await askBehind(stale, "SELECT 1", ending)).toEqual({ gen: 1, granted: 5 });
  });

  it("uses the limit that was committed meanwhile", async () => {
    expect(await askBehind(exchangeText, lowering(6))).toEqual({ gen: 1, granted: 1 });
  });

  it("would exceed a limit lowered meanwhile if it read the limit from the key", async () => {
    const joined = broken(
      "JOIN permit_windows p ON p.subject = u.subject",
      "JOIN permit_windows p ON p.subject = u.subject JOIN keys k ON k.id = p.subject",
    ).replace("p.rule_limit AS", "k.ratelimit_limit AS");
    expect(await askBehind(joined, lowering(6))).toEqual({ gen: 1, granted: 5 });
  });

  it("finds nothing where the window was deleted meanwhile", async () => {
    expect(await askBehind(exchangeText, "DELETE FROM permit_windows WHERE subject = 'k'")).toBeUndefined();
  });
});
