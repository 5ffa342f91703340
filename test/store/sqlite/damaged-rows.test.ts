import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { permitAsk, strict } from "../../contract/permit-asks.ts";
import { refillRule, sampleKey } from "../../contract/sample-keys.ts";
import { createKey, updateRemaining } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { openTestEngine, readRows, tamper } from "./open-test-engine.ts";

const counterDamages = [
  "remaining = -5",
  "remaining = 2147483648",
  "remaining = 9223372036854775807",
  "remaining = 1.5",
  "remaining = 'many'",
  "remaining = x'00'",
  "refill_interval = 'weekly'",
  "refill_interval = ''",
  "refill_amount = NULL",
  "refill_amount = 0",
  "refill_amount = -3",
  "refill_amount = 2147483648",
  "refill_amount = 'lots'",
  "refill_carry_over = NULL",
  "refill_carry_over = 2",
  "refilled_through_ms = NULL",
  "refilled_through_ms = 'soon'",
  "refilled_through_ms = 9223372036854775807",
];

const windowDamages = [
  "gen = -1",
  "gen = 'first'",
  "gen = 9223372036854775807",
  "ends_at_ms = -1",
  "ends_at_ms = 1.5",
  "ends_at_ms = 'soon'",
  "ends_at_ms = 9223372036854775807",
  "window_duration_ms = 0",
  "window_duration_ms = -1",
  "window_duration_ms = 'long'",
  "window_duration_ms = 9223372036854775807",
  "clamped_ends_at_ms = -1",
  "clamped_ends_at_ms = 'soon'",
  "clamped_ends_at_ms = 9223372036854775807",
  "granted = -5",
  "granted = 2147483648",
  "granted = 'many'",
  "granted = x'00'",
  "spent = -1",
  "spent = 6",
  "spent = 1.5",
  "contended = 2",
  "contended = 'yes'",
  "rule_limit = 0",
  "rule_limit = -1",
  "rule_limit = 2147483648",
  "rule_limit = 'all'",
  "rule_duration_ms = NULL",
  "rule_duration_ms = 0",
  "rule_duration_ms = 'long'",
];

describe("a damaged counter", () => {
  it("fails alone and keeps what it holds, whatever is wrong with it; the others of its batch are settled", async () => {
    const { file, clock, keys, settle } = await openTestEngine();
    const newKey = () => sampleKey(clock, { remaining: 5, refill: refillRule() });
    const pairs = counterDamages.map((damage) => ({ damage, damaged: newKey(), sound: newKey() }));
    await Promise.all(pairs.flatMap(({ damaged, sound }) => [createKey(keys, damaged), createKey(keys, sound)]));
    for (const { damage, damaged } of pairs) {
      tamper(file, `UPDATE counters SET ${damage} WHERE subject = '${damaged.id}'`);
    }
    const rows = () => new Map(readRows(file, "SELECT * FROM counters").map((row) => [row.subject, row]));
    const before = rows();

    clock.stepTo("2026-01-16T00:00:00.000Z");
    const charges = pairs.flatMap(({ damaged, sound }) =>
      [damaged.id, sound.id].map((keyId) => ({ subject: keyId, cost: 1, count: 4 })),
    );
    const results = await settle(charges);
    const after = rows();
    pairs.forEach(({ damage, damaged, sound }, i) => {
      expect(results[2 * i], damage).toEqual({ outcome: "failed", reason: expect.any(String) });
      expect(after.get(damaged.id), damage).toEqual(before.get(damaged.id));
      expect(results[2 * i + 1], damage).toEqual({ outcome: "settled", granted: 4, remaining: 6 });
      expect(after.get(sound.id)?.remaining, damage).toBe(6n);
    });
  });
});

describe("a damaged list of a key", () => {
  const rateLimits = [{ name: "a", rule: { mode: "local", limit: 1, durationMs: 1000 } }] as const;
  const lists = { permissions: ["docs.*"], ipAllow: ["10.0.0.0/8"], rateLimits, costMax: 5 };

  it.each([
    "permissions = '['",
    "permissions = '5'",
    "permissions = '[5]'",
    "ip_allow = ''",
    "ip_allow = '{}'",
    `ip_allow = '["10.0.0.1/8"]'`,
    "ratelimits = '['",
    "ratelimits = '[]'",
    "ratelimits = '{}'",
    "ratelimits = '[null]'",
    `ratelimits = '[{"name":"a/b","rule":{"mode":"local","limit":1,"durationMs":1000}}]'`,
    `ratelimits = '[{"name":"a","rule":{"mode":"local","limit":0,"durationMs":1000}}]'`,
    "cost_max = 0",
    "cost_max = 'many'",
    "cost_max = 2147483648",
  ])("is an outage of that key alone: %s", async (damage) => {
    const { file, clock, keys } = await openTestEngine();
    const [damaged, sound] = [sampleKey(clock, lists), sampleKey(clock, lists)];
    await createKey(keys, damaged);
    await createKey(keys, sound);
    tamper(file, `UPDATE keys SET ${damage} WHERE id = '${damaged.id}'`);
    await expect(keys.findByDigest(damaged.secretDigest)).rejects.toThrow(Unavailable);
    const { permissions, costMax } = lists;
    expect(await keys.findByDigest(sound.secretDigest)).toMatchObject({ permissions, costMax });
  });
});

describe("a charge on two counters", () => {
  it.each([
    ["the first is damaged", 0, "UPDATE counters SET refill_amount = 0 WHERE subject = 'X'"],
    ["the second is damaged", 1, "UPDATE counters SET refill_amount = 0 WHERE subject = 'X'"],
    ["the second cannot be written", 1, refusing("X")],
    ["the first cannot be written", 0, refusing("X")],
  ])("fails alone and takes from neither if %s", async (_, bad, damage) => {
    const { file, clock, keys, settle } = await openTestEngine();
    const [own, shared, sound] = [5, 5, 5].map((remaining) => sampleKey(clock, { remaining, refill: refillRule() }));
    if (own === undefined || shared === undefined || sound === undefined) throw new Error("three keys");
    for (const key of [own, shared, sound]) await createKey(keys, key);
    tamper(file, damage.replaceAll("X", [own, shared][bad]?.id ?? ""));
    const charges = [
      { subject: own.id, shared: shared.id, cost: 2, count: 1 },
      { subject: sound.id, cost: 3, count: 1 },
    ];
    expect(await settle(charges)).toEqual([
      { outcome: "failed", reason: expect.any(String) },
      { outcome: "settled", granted: 1, remaining: 2 },
    ]);
    const balances = new Map(readRows(file, "SELECT * FROM counters").map((row) => [row.subject, row.remaining]));
    expect([own, shared, sound].map(({ id }) => balances.get(id))).toEqual([5n, 5n, 2n]);
  });
});

/** Makes every change of this counter fail. */
function refusing(subject: string): string {
  return `CREATE TRIGGER refusing BEFORE UPDATE ON counters WHEN OLD.subject = '${subject}' BEGIN SELECT RAISE(ABORT, 'no'); END`;
}

describe("an update of a damaged counter", () => {
  it("fails, and changes nothing of the key, whatever is wrong with the counter", async () => {
    const { file, clock, keys } = await openTestEngine();
    const damaged = counterDamages.map((damage) => ({
      damage,
      key: sampleKey(clock, { remaining: 5, refill: refillRule() }),
    }));
    await Promise.all(damaged.map(({ key }) => createKey(keys, key)));
    for (const { damage, key } of damaged) tamper(file, `UPDATE counters SET ${damage} WHERE subject = '${key.id}'`);
    const rows = () => readRows(file, "SELECT * FROM counters JOIN keys ON id = subject ORDER BY subject");
    const before = rows();
    for (const { damage, key } of damaged) {
      for (const op of ["set", "increment", "decrement"] as const) {
        await expect(updateRemaining(keys, key.id, op, 1), `${op} with ${damage}`).rejects.toThrow(Unavailable);
      }
    }
    expect(rows()).toEqual(before);
  });
});

describe("a damaged window", () => {
  it("fails alone and keeps what it holds, whatever is wrong with it; the others of its batch are settled", async () => {
    const { file, clock, keys, exchange } = await openTestEngine();
    const newKey = () => sampleKey(clock, { rateLimit: strict(10) });
    const pairs = windowDamages.map((damage) => ({ damage, damaged: newKey(), sound: newKey() }));
    const all = pairs.flatMap(({ damaged, sound }) => [damaged, sound]);
    await Promise.all(all.map((key) => createKey(keys, key)));
    const askForFive = () => exchange(all.map(({ id }) => ({ subject: id, ...permitAsk({ waiting: ones(5) }) })));
    await askForFive();
    for (const { damage, damaged } of pairs) {
      tamper(file, `UPDATE permit_windows SET ${damage} WHERE subject = '${damaged.id}'`);
    }
    const rows = () => new Map(readRows(file, "SELECT * FROM permit_windows").map((row) => [row.subject, row]));
    const before = rows();

    const results = await askForFive();
    const after = rows();
    pairs.forEach(({ damage, damaged, sound }, i) => {
      expect(results[2 * i], damage).toEqual({ outcome: "failed", reason: expect.any(String) });
      expect(after.get(damaged.id), damage).toEqual(before.get(damaged.id));
      expect(results[2 * i + 1], damage).toMatchObject({ outcome: "settled", gen: 1, granted: 5, left: 0 });
      expect(after.get(sound.id)?.granted, damage).toBe(10n);
    });
  });
});
