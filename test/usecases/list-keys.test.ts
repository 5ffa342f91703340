import { expect, it } from "vitest";
import { listKeys } from "../../src/usecases/list-keys.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

it("listKeys answers pages of 50 keys unless asked for another number, and an empty one for an unknown API", async () => {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  for (let made = 0; made < 52; made++) await createKey(management, sampleKey(clock, { apiId: "api" }));
  const first = await listKeys(management, { apiId: "api" });
  expect(first.keys).toHaveLength(50);
  const second = await listKeys(management, { apiId: "api", after: first.cursor });
  expect(second.keys).toHaveLength(2);
  expect(second.cursor).toBeUndefined();
  expect((await listKeys(management, { apiId: "api", limit: 7 })).keys).toEqual(first.keys.slice(0, 7));
  expect(await listKeys(management, { apiId: "unknown" })).toEqual({ keys: [] });
});
