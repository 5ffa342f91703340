import { expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { updateRemaining } from "../../src/usecases/manage-resource.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

it("updateRemaining answers the balance, nothing for an unknown key, and says why it cannot be done", async () => {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  const key = sampleKey(clock, { remaining: 5 });
  await createKey(management, key);
  const update = (op: "set" | "increment" | "decrement", value: number | undefined, id = key.id) =>
    updateRemaining(management, "key", { id, op, value }, undefined, { clock, random: createSystemRandom() });

  expect(await update("increment", 3)).toEqual({ remaining: 8 });
  expect(await update("decrement", 8)).toEqual({ remaining: 0 });
  await expect(update("decrement", 1)).rejects.toThrow(new StateConflict("belowZero"));
  expect(await update("set", 2_147_483_647)).toEqual({ remaining: 2_147_483_647 });
  await expect(update("increment", 1)).rejects.toThrow("above 2147483647");
  expect(await update("set", undefined)).toEqual({ remaining: undefined });
  await expect(update("increment", 1)).rejects.toThrow("has no counter");
  expect(await update("set", 1, "key_none")).toBeUndefined();
});
