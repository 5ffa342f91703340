import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { GetSpendingRequestSchema } from "../../gen/latchkey/v1/usage_pb.js";
import { hourMs } from "../../src/domain/usage.ts";
import { ApiError } from "../../src/rpc/api-error.ts";
import type { HandlerContext } from "../../src/rpc/call.ts";
import { InvalidRequest } from "../../src/rpc/invalid-request.ts";
import { usageHandlers } from "../../src/rpc/usage-service.ts";
import type { SpendingAnswer } from "../../src/store/queries.ts";
import { charge, created } from "../contract/usage-cases.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

/* What the handlers of UsageService do themselves, over a store in memory. */

const dayMs = 24 * hourMs;

function setUp(read?: () => Promise<SpendingAnswer>) {
  const clock = new TestClock("2026-11-15T12:30:00Z");
  const store = createMemoryStore(clock);
  const management = read ? { ...store.management, read } : store.management;
  const { getSpending } = usageHandlers({ clock });
  const ask = (request: object, rootKeyId = "root_1") => {
    const context = { call: { headers: {} }, caller: { rootKeyId }, management, note: () => {} };
    return getSpending(create(GetSpendingRequestSchema, request), context as unknown as HandlerContext);
  };
  return { clock, store, ask };
}

it("answers what was spent by the day, marks the day that runs, and leaves out those that have not begun", async () => {
  const { clock, store, ask } = setUp();
  const key = await created(store, clock, { remaining: 100 });
  await charge(store, key, 3);
  clock.advance(dayMs);
  await charge(store, key, 4);
  const start = Date.parse("2026-11-14");
  const { results } = await ask({ keyIds: [key.id, "nobody"], start, end: start + 5 * dayMs, granularity: "day" });
  const buckets = [
    { start, end: start + dayMs, spent: 0, running: false },
    { start: start + dayMs, end: start + 2 * dayMs, spent: 3, running: false },
    { start: start + 2 * dayMs, end: start + 3 * dayMs, spent: 4, running: true },
  ];
  const meteredSince = Date.parse("2026-11-15T12:30:00Z");
  // 7 in the 24 hours since it was made.
  const runsOutAt = Math.ceil(clock.nowMs() + (93 * dayMs) / 7);
  expect(results).toMatchObject([
    { keyId: key.id, spent: 7, buckets, meteredSince, remaining: 93, nextRefillAt: undefined, runsOutAt },
    { keyId: "nobody", spent: 0, buckets: buckets.map((bucket) => ({ ...bucket, spent: 0 })) },
  ]);
  expect(results?.[1]?.meteredSince).toBeUndefined();
});

it("refuses what is older than what is kept, and names the oldest", async () => {
  const kept = { firstHour: 48, firstDayHour: 24 };
  const { ask } = setUp(async () => ({ nowMs: 9 * dayMs, counters: [undefined], kept }));
  const old = { keyIds: ["key"], end: 3 * dayMs };
  await expect(ask({ ...old, start: 47 * hourMs })).rejects.toThrow(
    "must not be before 1970-01-03T00:00:00.000Z, the oldest hour that is kept",
  );
  await expect(ask({ ...old, start: 48 * hourMs })).resolves.toBeDefined();
  // By the day it is known for longer.
  await expect(ask({ ...old, start: dayMs })).resolves.toBeDefined();
  const before = ask({ ...old, start: hourMs, end: 2 * hourMs });
  await expect(before).rejects.toThrow(InvalidRequest);
});

it("lets a root key have two questions under way, whatever becomes of them, and others as well", async () => {
  const waiting: ((answer: SpendingAnswer) => void)[] = [];
  const { ask } = setUp(() => new Promise((resolve) => waiting.push(resolve)));
  const question = { keyIds: ["key"], start: hourMs, end: 2 * hourMs };
  const first = [ask(question), ask(question)];
  const refusal = await Promise.resolve(ask(question)).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ApiError);
  expect(refusal).toMatchObject({ code: "TOO_MANY_REQUESTS", retryAfterMs: 1000 });
  const other = ask(question, "root_2");
  const answer = { nowMs: dayMs, counters: [undefined], kept: { firstHour: 0, firstDayHour: 0 } };
  for (const answerIt of waiting) answerIt(answer);
  await Promise.all([...first, other]);
  const again = ask(question);
  for (const answerIt of waiting) answerIt(answer);
  await expect(again).resolves.toBeDefined();
});
