import { describe, expect, it } from "vitest";
import { createSurely } from "../../support/create-surely.ts";
import { withRoom } from "../../support/deep.ts";
import {
  clientOfFront,
  codeOf,
  createSecrets,
  feedSettles,
  lookupsOf,
  said,
  verifyEach,
} from "../../support/news/fronts.ts";
import { holdDeletion, waitingCommits } from "../../support/news/held-commit.ts";
import { settles } from "../../support/settles.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { StrictCluster } from "../../support/strict/index.ts";
import { hasPostgres } from "../../support/test-database.ts";

/** What the documentation promises: a feed that is not current is noticed, and a change is in force everywhere. */
const withinMs = withRoom(2000);
/** However busy the machine is. */
const settledMs = 60_000;
const ttlMs = 2000;
const heldMs = 3000;

describe.runIf(hasPostgres)("edges on a database with a synchronous standby", () => {
  it("miss no deletion that the standby holds while coordinators fail over, and notice a primary that is cut off", async () => {
    const pair = await StandbyPair.start("synchronous");
    const cluster = await StrictCluster.start({
      edges: 2,
      coordinators: 2,
      databaseUrl: pair.url,
      coordinatorEnvironment: { LATCHKEY_DRAIN_MS: "0" },
      // The first stops serving from memory soon after its last news.
      edgeEnvironment: (edge) => (edge === 0 ? { LATCHKEY_CACHE_TTL_MS: String(ttlMs) } : {}),
    });
    await cluster.untilConnected();

    const { refusedMs, whileHeld, laterMs, ...figures } = await holdDeletion(pair, cluster, heldMs);
    console.log(JSON.stringify({ refusedMs, laterMs, ...figures }));
    expect(whileHeld, "it is not in force before it is committed").toEqual(["VALID", "VALID"]);
    expect(Math.max(...refusedMs)).toBeLessThan(withinMs);
    expect(Math.max(...laterMs), "later ones do not wait for it").toBeLessThan(withinMs);
    expect(figures).toEqual({ seenBySequence: false, laterMissedBySequence: 0, lookups: 0 });

    // Now the standby gets nothing any more. The primary still answers every read.
    const edges = [cluster.edge(0), cluster.edge(1)] as const;
    const [here, there] = [clientOfFront(edges[0]), clientOfFront(edges[1])];
    const doomed = await createSurely(here, { apiId: "api" });
    const [stays] = (await createSecrets(here, 1)) as [string];
    for (const client of [here, there]) expect(await verifyEach(client, [doomed.key, stays])).toEqual({ VALID: 2 });
    await Promise.all(edges.map((edge) => feedSettles(edge, 1)));
    const warnings = () => edges.map((edge) => said(edge, "the change feed cannot be read"));
    const warningsBefore = warnings();
    const lookupsBefore = await lookupsOf(edges[1]);
    let isCutOff = true;
    pair.link.onReply = () => (isCutOff ? "stall" : "pass");
    const cutOffMs = performance.now();
    // Held with everything else. The coordinator that was told of it may be the one that is killed later.
    const deleting = here.deleteKey({ keyId: doomed.keyId }).catch(() => {});
    await Promise.all(edges.map((edge) => feedSettles(edge, 0)));
    const told = warningsBefore.map((count) => count + 1).join();
    await settles(async () => warnings().join(), told, settledMs);
    const noticedMs = performance.now() - cutOffMs;
    console.log(`noticed after ${Math.round(noticedMs)} ms`);
    expect(noticedMs).toBeLessThan(withinMs);
    await settles(() => waitingCommits(pair), 1, settledMs);
    cluster.coordinator(0).kill("SIGKILL");
    const isLookedUp = async () => {
      const before = await lookupsOf(edges[0]);
      await codeOf(here, stays);
      return (await lookupsOf(edges[0])) > before;
    };
    expect(await settles(isLookedUp, true, settledMs)).toBeLessThan(withRoom(ttlMs));
    expect(await codeOf(there, stays), "with the usual time to live it is still served from memory").toBe("VALID");

    isCutOff = false;
    pair.link.cutAll();
    await deleting;
    await Promise.all(edges.map((edge) => feedSettles(edge, 1)));
    for (const client of [here, there]) {
      expect(await settles(() => codeOf(client, doomed.key), "NOT_FOUND", settledMs)).toBeLessThan(withinMs);
    }
    expect(await codeOf(there, stays)).toBe("VALID");
    // Of the deleted key only.
    expect((await lookupsOf(edges[1])) - lookupsBefore).toBeLessThanOrEqual(1);
  });
});
