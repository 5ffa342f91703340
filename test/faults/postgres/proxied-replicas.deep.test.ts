import { describe, expect, it } from "vitest";
import { startApi } from "../../support/guarded-api.ts";
import { guardedApi } from "../../support/keys-by-code.ts";
import { startLatchkey } from "../../support/latchkey-process.ts";
import { proxyNames } from "../../support/proxy-binaries.ts";
import { rawClient } from "../../support/raw-client.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasProxy, startTestProxy } from "../../support/test-proxies.ts";
import { testRootKey } from "../../support/test-root-key.ts";

const callers = 8;
const requestsBefore = 100;
const requestsAfter = 300;
const remaining = 10_000;

for (const name of proxyNames) {
  describe.runIf(hasPostgres && hasProxy(name))(`two replicas behind ${name}`, () => {
    it("charge no request twice while one of them is killed, and the other goes on", async () => {
      const environment = { DATABASE_URL: await createTestDatabase(), LATCHKEY_ROOT_KEY: testRootKey };
      const start = () => startLatchkey({ ...environment, LATCHKEY_DATA_DIR: tempFolder() });
      const [victim, survivor] = [await start(), await start()];
      const { api, received } = await startApi();
      const latchkey = [new URL(victim.baseUrl).host, new URL(survivor.baseUrl).host] as const;
      const proxy = await startTestProxy(name, { latchkey, api });
      const { keys } = rawClient({ baseUrl: survivor.baseUrl, rootKey: testRootKey });
      const { key, keyId } = await keys.createKey({ apiId: guardedApi, permissions: ["docs.read"], remaining });

      const statuses: number[] = [];
      const call = async () => {
        while (statuses.length < requestsBefore + requestsAfter) {
          const { status } = await fetch(proxy.baseUrl, { headers: { authorization: `Bearer ${key}` } });
          statuses.push(status);
          if (statuses.length === requestsBefore) victim.kill("SIGKILL");
        }
      };
      await Promise.all(Array.from({ length: callers }, call));
      await victim.exited;

      expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
      const passed = statuses.filter((status) => status === 200).length;
      expect(received).toHaveLength(passed);
      // The proxy leaves the dead one out, after a few failures.
      expect(statuses.length - passed).toBeLessThan(requestsAfter / 4);
      const charged = remaining - ((await keys.getKey({ keyId })).remaining ?? 0);
      expect(charged).toBeGreaterThanOrEqual(passed);
      // A request that got no decision may have been charged, once.
      expect(charged).toBeLessThanOrEqual(statuses.length);
    });
  });
}
