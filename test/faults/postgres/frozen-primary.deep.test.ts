import { describe, expect, it } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { withRoom } from "../../support/deep.ts";
import { startTestServer, type TestServer } from "../../support/in-process-server.ts";
import { rawClient } from "../../support/raw-client.ts";
import { readMetric } from "../../support/read-metric.ts";
import { settles } from "../../support/settles.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/** What the documentation promises: a feed that is not current is noticed, and a change is in force everywhere. */
const withinMs = withRoom(2000);
const backMs = 10_000;

const feedUp = ({ internalPort }: TestServer) => readMetric(internalPort, "latchkey_change_feed_up");

function said({ logLines }: TestServer, message: string): number {
  return logLines.filter((line) => line.includes(`"${message}"`)).length;
}

describe.runIf(hasPostgres)("a primary that is cut off from its synchronous standby", () => {
  it("is noticed within two seconds, holds a deletion that no replica misses later, and its standby goes on without anyone forgetting", async () => {
    const pair = await StandbyPair.start("synchronous");
    const databaseUrl = new Secret(pair.url);
    // A short time to live: it runs while the feed is frozen.
    const replicas = await Promise.all(
      [1, 2].map(() => startTestServer({ settings: { databaseUrl, cacheTtlMs: 2000 } })),
    );
    const [first, second] = replicas as [TestServer, TestServer];
    const clients = replicas.map(({ baseUrl }) => rawClient({ baseUrl, rootKey: testRootKey }).keys);
    const [here, there] = clients as [(typeof clients)[0], (typeof clients)[0]];
    const [deleted, stays] = await Promise.all([here.createKey({ apiId: "api" }), here.createKey({ apiId: "api" })]);
    const codeOf = (client: typeof here, key: string) =>
      client.verifyKey({ key }).then(
        ({ code }) => code as string,
        () => "UNDECIDED",
      );
    for (const client of clients) {
      for (const { key } of [deleted, stays]) expect(await codeOf(client, key)).toBe("VALID");
    }
    for (const replica of replicas) await settles(() => feedUp(replica), 1, backMs);

    // The standby gets nothing any more: the primary still answers every read.
    let isCutOff = true;
    pair.link.onReply = () => (isCutOff ? "stall" : "pass");
    const noticed = await Promise.all(replicas.map((replica) => settles(() => feedUp(replica), 0, backMs)));
    console.log(`noticed after ${noticed.map(Math.round).join(", ")} ms`);
    expect(Math.max(...noticed)).toBeLessThan(withinMs);
    for (const replica of replicas)
      await settles(async () => said(replica, "the change feed cannot be read"), 1, backMs);
    // The control: whoever only reads the feed finds nothing wrong.
    expect((await pair.primary.query("SELECT FROM change_feed LEFT JOIN changes ON true")).rows.length).toBeGreaterThan(
      0,
    );

    // Held by its standby: it is answered when that is back.
    const deleting = here.deleteKey({ keyId: deleted.keyId }).catch(() => {});
    await settles(
      async () =>
        (await pair.primary.query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"))
          .rows.length,
      1,
      backMs,
    );
    isCutOff = false;
    pair.link.cutAll();
    await Promise.all(replicas.map((replica) => settles(() => feedUp(replica), 1, backMs)));
    await deleting;
    expect(await settles(() => codeOf(there, deleted.key), "NOT_FOUND", backMs)).toBeLessThan(withinMs);

    // Positions mean the same on the server that takes over: keys that did not change are not looked up again.
    await pair.primary.kill();
    await pair.promote();
    await Promise.all(replicas.map((replica) => settles(() => feedUp(replica), 1, backMs)));
    const misses = () => readMetric(second.internalPort, 'latchkey_key_cache_total{event="miss"}');
    const before = await misses();
    expect(await codeOf(there, stays.key)).toBe("VALID");
    expect(await misses()).toBe(before);
    for (const replica of [first, second]) {
      expect(said(replica, "changes may have been missed: everything remembered is forgotten")).toBe(0);
    }
    await here.deleteKey({ keyId: stays.keyId });
    expect(await settles(() => codeOf(there, stays.key), "NOT_FOUND", backMs)).toBeLessThan(withinMs);
  });
});
