import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Command } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import { deleteResource } from "../../src/usecases/manage-resource.ts";
import { done } from "../support/manage.ts";
import { TestClock } from "../support/test-clock.ts";
import { inTurn } from "./fakes.ts";

const clock = new TestClock();
const deps = { clock, random: createSystemRandom() };

function setUp(answer: Outcome | Error) {
  const commands: Command[] = [];
  const answers = inTurn("deletions", [answer]);
  const management = {
    async change(command: Command) {
      commands.push(command);
      return answers();
    },
  };
  return { commands, management };
}

describe("deleteKey", () => {
  it.each<{ name: string; outcome: Outcome; existed: boolean }>([
    { name: "says that there was such a key", outcome: done, existed: true },
    { name: "says that there was no such key", outcome: { outcome: "missing" }, existed: false },
  ])("$name", async ({ outcome, existed }) => {
    const { management, commands } = setUp(outcome);
    expect(await deleteResource(management, "deleteKey", "key_1", undefined, deps)).toBe(existed);
    expect(commands).toMatchObject([{ kind: "deleteKey", id: "key_1", event: { atMs: clock.nowMs() } }]);
  });

  it("says nothing of the key when the store is away", async () => {
    const away = new Unavailable("away");
    await expect(deleteResource(setUp(away).management, "deleteKey", "key_1", undefined, deps)).rejects.toBe(away);
  });
});
