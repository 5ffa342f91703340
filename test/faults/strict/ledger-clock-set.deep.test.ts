import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { sha256 } from "../../../src/ambient/crypto.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import type { Placed } from "../../support/limited.ts";
import { type HttpReplica, httpReplicas } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const hourMs = 3_600_000;
const limit = 5;
const durationMs = 2500;
/** For how long a denial may be remembered while the clock is behind. */
const noticedMs = 1000;
/** For a busy machine. */
const slackMs = 1500;

// The keys, by what is done to their rows: the last two stand for ledgers with a mistake, which the test must see.
const [sound, halfUsed, neverClamped, overwritten] = [0, 1, 2, 3] as const;

describe.runIf(hasPostgres)("a ledger whose clock is set back by an hour", { retry: 0 }, () => {
  it("grants no window twice, locks a key for at most its duration, and raises the alarm", async () => {
    // A replica that was refused answers from memory: so others ask while the clock is behind, and when it is right.
    const { first, second, third, ledger, tamper, logLines } = await setUp();
    const endsAtMs = ((await first.ask(sound)) as Placed).resetMs;
    expect(await passedOf(first, sound, 2 * limit)).toBe(limit - 1);
    expect(await passedOf(first, halfUsed, 2)).toBe(2);
    for (const key of [neverClamped, overwritten]) expect(await passedOf(first, key, limit)).toBe(limit);
    await tamper(neverClamped, "window_duration_ms = 9000000000000");

    ledger.aheadMs = -hourMs;
    for (const key of [sound, neverClamped, overwritten]) expect(await passedOf(second, key, 2)).toBe(0);
    expect(await passedOf(second, halfUsed, 2 * limit)).toBeLessThanOrEqual(limit - 2);
    await tamper(overwritten, "ends_at_ms = clamped_ends_at_ms, clamped_ends_at_ms = 0");
    await delay(100);

    ledger.aheadMs = 0;
    expect(await passedOf(third, sound, 2)).toBe(0);
    expect(await passedOf(third, overwritten, 2), "the control is granted twice").toBe(2);
    expect(Date.now()).toBeLessThan(endsAtMs);
    await delay(endsAtMs - Date.now() + noticedMs);
    expect(await passedOf(second, sound, 2 * limit)).toBe(limit);
    const locked = (await second.ask(neverClamped)) as Placed & { outcome: string };
    expect(locked.outcome, "the control is locked").toBe("limited");
    expect(locked.resetMs, "the control tells a reset in the past").toBeLessThan(Date.now());

    // Back for good, with a window that has just begun.
    const begunMs = performance.now();
    ledger.aheadMs = -hourMs;
    while ((await passedOf(third, sound, 1)) === 0) await delay(20);
    const lockedMs = performance.now() - begunMs;
    console.log(`set back for good: locked for ${Math.round(lockedMs)} ms, of ${durationMs}`);
    expect(lockedMs).toBeGreaterThan(durationMs * 0.9);
    expect(lockedMs).toBeLessThan(durationMs + noticedMs + slackMs);
    // This window was opened by the wrong clock, and its end is told by it.
    expect(await passedOf(third, sound, limit - 1)).toBe(limit - 1);
    expect((await third.ask(sound)).outcome).toBe("limited");

    const jumps = logLines.filter((line) => line.includes("the ledger's clock jumped"));
    expect(jumps.map((line) => JSON.parse(line).direction)).toEqual(["backward", "forward"]);
  });
});

/** How many of so many calls at once pass. The others are refused, until some moment that is still to come. */
async function passedOf(replica: HttpReplica, key: number, calls: number): Promise<number> {
  const askedAtMs = Date.now();
  const answers = await Promise.all(Array.from({ length: calls }, () => replica.ask(key)));
  const refused = answers.flatMap((answer) => (answer.outcome === "limited" ? [answer] : []));
  for (const { resetMs } of refused) expect(resetMs).toBeGreaterThan(askedAtMs);
  const passed = answers.filter(({ outcome }) => outcome === "admitted").length;
  expect(passed + refused.length).toBe(calls);
  return passed;
}

/** Three replicas on one Postgres whose clock is in the test's hands. */
async function setUp() {
  const url = await createTestDatabase();
  const ledger = { aheadMs: 0, nowMs: () => systemClock.nowMs() + ledger.aheadMs };
  const settings = { databaseUrl: new Secret(url), databaseConnectionsMax: 4 };
  const servers = [];
  for (let i = 0; i < 3; i++) servers.push(await startTestServer({ settings, ledgerClock: ledger }));
  const logLines = servers[1]?.logLines as string[];
  const replicas = await httpReplicas(servers, Array(4).fill({ limit, durationMs }));
  const [first, second, third] = replicas as [HttpReplica, HttpReplica, HttpReplica];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const tamper = async (key: number, change: string) => {
    const digest = sha256(first.limited[key]?.key as string);
    await client.query(`UPDATE permit_windows SET ${change} WHERE subject = (SELECT id FROM keys WHERE digest = $1)`, [
      digest,
    ]);
  };
  return { first, second, third, ledger, tamper, logLines };
}
