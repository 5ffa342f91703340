import { describe, expect, it, onTestFinished } from "vitest";
import { openSqliteStore } from "../../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { ask, createdStrict, permitAsk, strict, windowMs } from "../../contract/permit-asks.ts";
import { refillRule, sampleKey } from "../../contract/sample-keys.ts";
import { charge, created, settled } from "../../contract/usage-cases.ts";
import { createKey } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { openTestEngine, testOptions } from "./open-test-engine.ts";

const dayMs = 86_400_000;

describe("the embedded store's windows", () => {
  it.each(["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"])(
    "keep their length when the wall clock is set to %s, which refills follow all the same",
    async (wall) => {
      const { options, clock } = testOptions();
      const store = await openSqliteStore(options);
      onTestFinished(() => store.close());
      const key = await createdStrict(store, clock, 10);
      const { endsAtMs } = await ask(store, key, { waiting: ones(10) });
      clock.stepTo(wall);
      clock.advance(windowMs - 1);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: 1, endsAtMs });
      clock.advance(1);
      const next = { gen: 2, granted: 1, endsInMs: windowMs, endsAtMs: endsAtMs + windowMs };
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject(next);

      const counted = await created(store, clock, { remaining: 0, refill: refillRule() });
      clock.stepTo(clock.nowMs() + dayMs);
      expect(await charge(store, counted, 1)).toEqual(settled(1, 9));
    },
  );

  it("go on where they were when the store is opened again, by the wall clock of then", async () => {
    const { options, clock } = testOptions();
    const first = await openSqliteStore(options);
    const key = await createdStrict(first, clock, 10);
    await ask(first, key, { waiting: ones(7), gen: 1 });
    await first.close();
    clock.stepTo(clock.nowMs() + windowMs - 1000);
    const second = await openSqliteStore(options);
    onTestFinished(() => second.close());
    const grant = await ask(second, key, { waiting: ones(7), gen: 1, spent: 4 });
    expect(grant).toMatchObject({ gen: 1, granted: 3, left: 0, outstanding: 6, endsInMs: 1000 });
  });

  it("are locked for at most their duration by a clock that was set back before the store is opened again", async () => {
    const { options, clock } = testOptions();
    const reopened = async (open: Store) => {
      await open.close();
      return openSqliteStore(options);
    };
    let store = await openSqliteStore(options);
    onTestFinished(() => store.close());
    const [brief, lasting] = [await createdStrict(store, clock, 10), await createdStrict(store, clock, 10)];
    for (const key of [brief, lasting]) await ask(store, key, { waiting: ones(10) });
    clock.stepTo(clock.nowMs() - 3_600_000);
    store = await reopened(store);
    const behind = { gen: 1, granted: 0, endsInMs: windowMs, clockBehind: true };
    for (const key of [brief, lasting]) expect(await ask(store, key, { waiting: ones(1) })).toMatchObject(behind);

    // Right again: the true end counts.
    clock.advance(20_000);
    clock.stepTo(clock.nowMs() + 3_600_000);
    store = await reopened(store);
    const right = { gen: 1, granted: 0, endsInMs: windowMs - 20_000, clockBehind: false };
    expect(await ask(store, brief, { waiting: ones(1) })).toMatchObject(right);

    // Back again, and for good.
    clock.stepTo(clock.nowMs() - 3_600_000);
    store = await reopened(store);
    clock.advance(windowMs - 20_000);
    expect(await ask(store, lasting, { waiting: ones(10) })).toMatchObject({ gen: 2, granted: 10, clockBehind: false });
  });

  it("are judged by the time of the commit, however long an ask waited for its turn", async () => {
    const { clock, keys, exchange } = await openTestEngine();
    const [key, other] = [sampleKey(clock, { rateLimit: strict(10) }), sampleKey(clock, { rateLimit: strict(10) })];
    for (const each of [key, other]) await createKey(keys, each);
    const asking = (subject: string) => exchange([{ subject, ...permitAsk({ waiting: ones(10) }) }]);
    await asking(key.id);
    const underWay = asking(other.id);
    // By then the writer has its batch, and new asks wait for the next one.
    for (let i = 0; i < 5; i++) await Promise.resolve();
    const waiting = asking(key.id);
    clock.advance(windowMs);
    expect(await underWay).toMatchObject([{ gen: 1 }]);
    expect(await waiting).toMatchObject([{ gen: 2, granted: 10, endsInMs: windowMs }]);
  });
});
