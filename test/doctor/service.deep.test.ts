import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { runDoctor } from "./run-doctor.ts";

it("latchkey doctor --url finds an event loop that is late", async () => {
  const latchkey = await startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey });
  let isOver = false;
  const hinder = async () => {
    while (!isOver) {
      latchkey.kill("SIGSTOP");
      await delay(150);
      latchkey.kill("SIGCONT");
      await delay(120);
    }
  };
  const hindering = hinder();
  const answer = await runDoctor({}, ["--url", latchkey.baseUrl, "--internal-url", latchkey.internalUrl]);
  isOver = true;
  await hindering;
  expect(answer).toMatchObject({ ids: ["service-event-loop-late"], code: 3 });
  expect(answer.findings[0]?.fix).toContain("LATCHKEY_WORKERS");
});
