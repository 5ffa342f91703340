import { describe, expect, it } from "vitest";
import type { PermitAsk } from "../../../src/domain/permit-window.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { ones } from "../../support/ones.ts";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { databaseWithLimits, lockRow, openPermitLane, surely, through } from "./lane-fixture.ts";

const asking = (subject: string, given: Partial<PermitAsk>) => ({ subject, ...permitAsk(given) });
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `key_${String(i).padStart(2, "0")}`);

/** A link that loses one reply, when it is told to. */
async function linkTo(url: string): Promise<{ url: string; cutNext: () => void; proxy: FaultyProxy }> {
  const proxy = await FaultyProxy.start(Number(new URL(url).port));
  let cuts = 0;
  proxy.onReply = () => (cuts > 0 && cuts-- > 0 ? "cut" : "pass");
  return { url: through(url, proxy.port), cutNext: () => void cuts++, proxy };
}

async function grantedByKey(url: string): Promise<readonly [string, number][]> {
  const { rows } = await query(url, "SELECT subject, granted::int FROM permit_windows ORDER BY subject");
  return rows.map((row) => [row.subject, row.granted]);
}

describe.runIf(hasPostgres)("a lane of the permit ledger", () => {
  it("answers a repeated batch whose first reply was lost with the whole grant, and takes a return once", async () => {
    const url = await databaseWithLimits(["k", "other"], 10);
    const link = await linkTo(url);
    const lane = openPermitLane(link.url, { timeoutMs: 20_000 });
    const [opened] = await lane.exchange([asking("k", { waiting: ones(8) })]);
    link.cutNext();
    const asks = [
      asking("k", { waiting: ones(4), gen: 1, returned: 3, spent: 2 }),
      asking("nobody", { waiting: ones(1) }),
    ];
    const [grant, missing] = await lane.exchange([...asks, asking("other", { waiting: ones(1) })]);
    expect(link.proxy.cuts).toBe(1);
    const { endsAtMs, durationMs } = opened as { endsAtMs: number; durationMs: number };
    expect(grant).toEqual({
      outcome: "settled",
      gen: 1,
      granted: 4,
      left: 1,
      outstanding: 7,
      endsInMs: expect.any(Number),
      endsAtMs,
      durationMs,
      clockBehind: false,
      contended: true,
      limit: 10,
    });
    expect(missing).toEqual({ outcome: "missing" });
    expect(await grantedByKey(url)).toEqual([
      ["k", 9],
      ["other", 1],
    ]);
  });

  it("shares each key's limit exactly with other writers, which name the keys in any order", async () => {
    const keyIds = numbered(12);
    const url = await databaseWithLimits(keyIds, 100);
    const granted = new Map(keyIds.map((subject) => [subject, 0]));
    const orders = [keyIds, keyIds.toReversed(), [...keyIds.slice(5), ...keyIds.slice(0, 5)]];
    await Promise.all(
      orders.map(async (order) => {
        const lane = openPermitLane(url, { timeoutMs: 20_000 });
        for (let i = 0; i < 60; i++) {
          const results = await lane.exchange(
            order.map((subject) => asking(subject, { waiting: ones(1), holders: 3 })),
          );
          results.forEach((result, at) => {
            if (result.outcome !== "settled") throw new Error(`an ask is ${result.outcome}`);
            expect(result.gen).toBe(1);
            granted.set(order[at] as string, (granted.get(order[at] as string) ?? 0) + result.granted);
          });
        }
      }),
    );
    expect([...granted]).toEqual(keyIds.map((subject) => [subject, 100]));
    expect(await grantedByKey(url)).toEqual(keyIds.map((subject) => [subject, 100]));
  });

  it("settles all others when the database refuses one row", async () => {
    const keyIds = numbered(20);
    const url = await databaseWithLimits(keyIds, 5);
    const lane = openPermitLane(url, { timeoutMs: 20_000 });
    await lane.exchange(keyIds.map((subject) => asking(subject, { waiting: ones(1) })));
    await damage(url, "key_13");
    const results = await lane.exchange(
      keyIds.map((subject) => asking(subject, { waiting: ones(1), gen: 1, spent: 1 })),
    );
    const expected = keyIds.map((subject) =>
      subject === "key_13"
        ? { outcome: "failed", reason: expect.any(String) }
        : expect.objectContaining({ outcome: "settled", granted: 1, outstanding: 1, left: 3 }),
    );
    expect(results).toEqual(expected);
  });

  it("grants to all others when another session has locked one window, which fails alone until it is unlocked", async () => {
    const keyIds = numbered(5);
    const url = await databaseWithLimits(keyIds, 10);
    const lane = openPermitLane(url, { timeoutMs: 20_000, lockMs: 150 });
    const asks = [...keyIds, "nobody"].map((subject) => asking(subject, { waiting: ones(1) }));
    const holder = await lockRow(url, "permit_windows", "key_02");
    const results = await lane.exchange(asks);
    expect(results.map(({ outcome }) => outcome)).toEqual([
      ...["settled", "settled", "failed", "settled", "settled"],
      "missing",
    ]);
    await holder.release();
    expect((await lane.exchange(asks))[2]).toMatchObject({ outcome: "settled", granted: 1, left: 9 });
    expect(await grantedByKey(url)).toEqual(keyIds.map((subject) => [subject, subject === "key_02" ? 1 : 2]));
  });

  it("does not split a refused batch while an earlier attempt of it may still be applied", async () => {
    const url = await databaseWithLimits(["bad", "good"], 5);
    const link = await linkTo(url);
    const lane = openPermitLane(link.url, { timeoutMs: 20_000 });
    await lane.exchange([asking("bad", { waiting: ones(1) }), asking("good", { waiting: ones(1) })]);
    await damage(url, "bad");
    const asks = [asking("bad", { waiting: ones(1), gen: 1, spent: 1 }), asking("good", { waiting: ones(1) })];
    link.cutNext();
    await expect(lane.exchange(asks)).rejects.toThrow(Unavailable);
    expect((await lane.exchange(asks)).map(({ outcome }) => outcome)).toEqual(["failed", "settled"]);
  });

  it("gives up asks that hang, and never applies them later", async () => {
    const url = await databaseWithLimits(["k"], 10);
    const link = await linkTo(url);
    const lane = openPermitLane(link.url, { timeoutMs: 1000 });
    await openPermitLane(url, { timeoutMs: 20_000 }).exchange([asking("k", { waiting: ones(5) })]);
    link.proxy.cutAll();
    link.proxy.refusing = true;
    await expect(lane.exchange([asking("k", { gen: 1, returned: 5 })])).rejects.toThrow(Unavailable);
    link.proxy.refusing = false;
    // It wants nothing, so that it can ask again where there was no answer in time.
    const [grant] = await surely(() => lane.exchange([asking("k", {})]));
    expect(grant).toMatchObject({ granted: 0, left: 5, outstanding: 5 });
  });
});

/** A row whose next report overflows: the database refuses the whole statement. */
async function damage(url: string, subject: string): Promise<void> {
  const huge = "9223372036854775807";
  await query(url, `UPDATE permit_windows SET granted = ${huge}, spent = ${huge} WHERE subject = '${subject}'`);
}
