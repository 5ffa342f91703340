import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { followPage, repeat } from "./follow-incident-page.ts";

it("somebody on call, with nothing but the page, finds a process that has too much to do", async () => {
  const own = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DATA_DIR: tempFolder() };
  const latchkey = await startLatchkey(own);
  repeat(async () => {
    latchkey.kill("SIGSTOP");
    await delay(150);
    latchkey.kill("SIGCONT");
    await delay(100);
  });
  const { ids, causes } = await followPage("Verifications are slow", own, latchkey);
  expect(ids).toContain("service-event-loop-late");
  expect(causes).toMatch(/A process has too much to do/);
});
