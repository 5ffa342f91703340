import { expect, it } from "vitest";
import { listEvents } from "../../src/usecases/list-events.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

it("listEvents answers pages of 50 events unless asked for another number", async () => {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  for (let made = 0; made < 52; made++) await createKey(management, sampleKey(clock));
  const first = await listEvents(management, {});
  expect(first.events).toHaveLength(50);
  const second = await listEvents(management, { after: first.cursor });
  expect(second.events).toHaveLength(2);
  expect(second.cursor).toBeUndefined();
  expect((await listEvents(management, { limit: 7 })).events).toEqual(first.events.slice(0, 7));
  expect(await listEvents(management, { targetId: "unknown" })).toEqual({ events: [] });
});
