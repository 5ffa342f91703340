import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { UsageLedger } from "../../src/store/usage-ledger.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { sized } from "../support/deep.ts";
import { engines } from "../support/engines.ts";
import { problemsWithUse, useUpTogether } from "../support/exact-usage.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { testRootKey } from "../support/test-root-key.ts";

const clients = 96;
const uses = sized(300, 1000);

/** Looks, and then writes: in between, others look too. */
function createReadThenWriteLedger(): UsageLedger {
  const balances = new Map<string, number>();
  return {
    async spend([keyId]) {
      const remaining = balances.get(keyId) ?? uses;
      await nextTurn();
      if (remaining === 0) return { outcome: "exhausted", remaining };
      balances.set(keyId, remaining - 1);
      return { outcome: "spent", remaining: remaining - 1 };
    },
  };
}

async function serveWithLedger(usage: UsageLedger): Promise<string> {
  const { onePort, setReady } = composePublicApi(() => ({ usage }));
  setReady(true);
  onTestFinished(() => onePort.close(0));
  return `http://127.0.0.1:${await onePort.listen(0, "127.0.0.1")}`;
}

describe(`${clients} clients of every kind on one key with ${uses} uses`, () => {
  it.each(engines)("get every use exactly once, and not one more, on $name", async (engine) => {
    // However busy the machine is, every use is decided.
    const patient = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_USAGE_TIMEOUT_MS: "20000" };
    const { baseUrl } = await startLatchkey({ ...(await engine.environment()), ...patient });

    const answers = await useUpTogether({ baseUrls: [baseUrl], rootKey: testRootKey, clients, uses });

    expect(problemsWithUse(answers, uses)).toEqual([]);
    expect(answers.length).toBeGreaterThan(uses);
  });

  it("would show a ledger that reads and then writes", async () => {
    const baseUrl = await serveWithLedger(createReadThenWriteLedger());

    const answers = await useUpTogether({ baseUrls: [baseUrl], rootKey: testRootKey, clients, uses });

    expect(problemsWithUse(answers, uses)).toContainEqual(expect.stringContaining("came twice"));
  });
});
