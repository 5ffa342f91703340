import { describe, expect, it } from "vitest";
import { holdDeletion } from "../support/news/held-commit.ts";
import { countLookupsAfter, restartCoordinators } from "../support/news/restarts.ts";
import { StandbyPair } from "../support/standby-pair.ts";
import { StrictCluster } from "../support/strict/index.ts";
import { createTestDatabase } from "../support/test-database.ts";

/* `npm run soak -- news`: what edges hear of changes, for as long and as often as it is promised. */

const restarts = 20;
const remembered = 10_000;
const heldMs = 60_000;
/** What the documentation promises. */
const withinMs = 2000;

describe("what edges hear of changes", () => {
  it(`survives ${restarts} orderly restarts of coordinators`, async () => {
    const databaseUrl = await createTestDatabase();
    const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl });
    await cluster.untilConnected();
    const figures = await countLookupsAfter(cluster, [0, 1], remembered, () => restartCoordinators(cluster, restarts));
    console.log(JSON.stringify(figures));
    expect(Math.max(...figures.lookups)).toBeLessThanOrEqual(remembered / 100);
    for (const codes of figures.meanwhile) expect(Object.keys(codes).sort()).toEqual(["NOT_FOUND", "VALID"]);
  });

  it(`includes a deletion that the standby has held for ${heldMs / 1000} s while coordinators failed over`, async () => {
    const pair = await StandbyPair.start("synchronous");
    const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl: pair.url });
    await cluster.untilConnected();
    const { refusedMs, whileHeld, laterMs, ...figures } = await holdDeletion(pair, cluster, heldMs);
    console.log(JSON.stringify({ refusedMs, later: laterMs.length, laterMaxMs: Math.max(...laterMs), ...figures }));
    expect(whileHeld).toEqual(["VALID", "VALID"]);
    expect(Math.max(...refusedMs, ...laterMs)).toBeLessThan(withinMs);
    expect(figures).toEqual({ seenBySequence: false, laterMissedBySequence: 0, lookups: 0 });
  });
});
