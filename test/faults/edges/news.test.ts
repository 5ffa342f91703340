import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSurely, surely } from "../../support/create-surely.ts";
import { isDeep, sized, withRoom } from "../../support/deep.ts";
import { type LatchkeyProcess, startLatchkey } from "../../support/latchkey-process.ts";
import {
  clientOfFront,
  codeOf,
  createSecrets,
  feedSettles,
  lookupsOf,
  said,
  verifyEach,
} from "../../support/news/fronts.ts";
import { countLookupsAfter, restartCoordinators } from "../../support/news/restarts.ts";
import { deletion, expectInForce } from "../../support/news/watched-changes.ts";
import { query } from "../../support/run-statement.ts";
import { settles } from "../../support/settles.ts";
import { StrictCluster } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/* Edges that hear of changes from coordinators, without Redis. Each is a process, and so is a replica beside them. */

/** However busy the machine is. */
const settledMs = 60_000;
/** At full size what the documentation promises: a deletion is in force, and a feed that cannot be read is noticed. */
const withinMs = sized(settledMs, withRoom(2000));
/** After the end of a cut. */
const backWithinMs = sized(settledMs, withRoom(3000));
const ttlMs = 2000;
const remembered = sized(200, 1000);
const inTime = sized("", " within two seconds");
/** One with the usual time to live, and one with a short one. */
const [usual, short] = [0, 1] as const;

const undo: (() => unknown)[] = [];
const atEnd = (step: () => unknown) => void undo.push(step);

describe.runIf(hasPostgres)("what edges hear of changes", () => {
  let databaseUrl: string;
  let cluster: StrictCluster;
  let replica: LatchkeyProcess;

  beforeAll(async () => {
    databaseUrl = await createTestDatabase();
    cluster = await StrictCluster.start({
      edges: 2,
      coordinators: 2,
      databaseUrl,
      coordinatorEnvironment: { LATCHKEY_DRAIN_MS: "0" },
      edgeEnvironment: (edge) => (edge === short ? { LATCHKEY_CACHE_TTL_MS: String(ttlMs) } : {}),
      atEnd,
    });
    replica = await startLatchkey({ DATABASE_URL: databaseUrl, LATCHKEY_ROOT_KEY: testRootKey }, undefined, atEnd);
    await cluster.untilConnected();
  });
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  const fronts = () => [cluster.edge(usual), cluster.edge(short), replica].map(({ baseUrl }) => baseUrl);
  const forgetEverything = async () => {
    const before = said(cluster.edge(usual), "changes may have been missed: everything remembered is forgotten");
    await query(databaseUrl, "INSERT INTO changes (kind) VALUES ('everything')");
    const forgotten = async () =>
      said(cluster.edge(usual), "changes may have been missed: everything remembered is forgotten") - before;
    await settles(forgotten, 1, settledMs);
  };

  it("survives orderly restarts of coordinators: almost nothing is looked up again, and no call gets 503", async () => {
    const { lookups, meanwhile } = await countLookupsAfter(cluster, [usual], remembered, () =>
      restartCoordinators(cluster, sized(2, 3)),
    );
    console.log(JSON.stringify({ lookups, meanwhile }));
    // On a busy machine a look-up may not be answered in time: then it was one of a key that has to be looked up.
    const late = sized(
      meanwhile.reduce((sum, codes) => sum + (codes["503"] ?? 0), 0),
      0,
    );
    expect(Math.max(...lookups)).toBeLessThanOrEqual(remembered / 100 + late);
    for (const codes of meanwhile) {
      const answered = Object.keys(codes).filter((code) => isDeep || code !== "503");
      expect(answered.sort()).toEqual(["NOT_FOUND", "VALID"]);
    }
  });

  it("is counted as it should be: the control, an edge that forgets everything, looks all up again", async () => {
    const { lookups } = await countLookupsAfter(cluster, [usual], 100, forgetEverything);
    expect(Math.min(...lookups)).toBeGreaterThanOrEqual(100);
  });

  it(`includes every change of keys and root keys${inTime} on each front, and at once on the one that was asked`, async () => {
    await expectInForce(fronts(), withinMs);
  });

  it("includes a lower strict limit at once on the front that was asked: what it holds is not spent", async () => {
    const client = clientOfFront(cluster.edge(usual));
    for (let times = 0; times < 10; times++) {
      const ratelimit = { limit: 1000, duration: 600_000, async: false };
      const { keyId, key } = await createSurely(client, { apiId: "api", ratelimit });
      for (let uses = 0; uses < 3; uses++) await settles(() => codeOf(client, key), "VALID", settledMs);
      await surely(() => client.updateKey({ keyId, ratelimit: { limit: 1 } }));
      expect(await surely(() => codeOf(client, key))).toBe("RATE_LIMITED");
    }
  });

  // Each edge has an order of its own: of these two, one is the coordinator that its news comes from.
  it.each([0, 1])(`includes a deletion${inTime} if coordinator %i is killed right after it`, async (index) => {
    await expectInForce(fronts(), withinMs, [deletion], () => cluster.coordinator(index).kill("SIGKILL"));
    await cluster.replaceCoordinator(index);
    await cluster.untilConnected();
  });

  it(`is missing while the feed cannot be read: it says so${inTime}, and stops serving from memory`, async () => {
    const edge = cluster.edge(short);
    const client = clientOfFront(edge);
    const [key] = (await createSecrets(client, 1)) as [string];
    expect(await codeOf(client, key)).toBe("VALID");
    await feedSettles(edge, 1);
    const warnings = said(edge, "the change feed cannot be read");
    const isLookedUp = async () => {
      const earlier = await lookupsOf(edge);
      await settles(() => codeOf(client, key), "VALID", settledMs);
      return (await lookupsOf(edge)) > earlier;
    };
    await settles(isLookedUp, false, sized(settledMs, 0));

    await query(databaseUrl, "ALTER TABLE change_feed RENAME TO away");
    try {
      expect(await feedSettles(edge, 0)).toBeLessThan(withinMs);
      await settles(async () => said(edge, "the change feed cannot be read"), warnings + 1, sized(settledMs, 0));
      // Counted from the last news, which was before.
      expect(await settles(isLookedUp, true, settledMs)).toBeLessThan(sized(settledMs, withRoom(ttlMs)));
    } finally {
      await query(databaseUrl, "ALTER TABLE away RENAME TO change_feed");
    }
    await feedSettles(edge, 1);
  });

  it("is asked for after a cut: what was deleted meanwhile is gone at once, and nothing else is looked up again", async () => {
    const edge = cluster.edge(short);
    const [client, elsewhere] = [clientOfFront(edge), clientOfFront(cluster.edge(usual))];
    const others = await createSecrets(client, sized(100, 500));
    const probe = others.pop() as string;
    const doomed = await createSurely(client, { apiId: "api" });
    for (const key of [...others, probe, doomed.key]) await settles(() => codeOf(client, key), "VALID", settledMs);
    await feedSettles(edge, 1);
    const links = cluster.links[short] ?? [];

    const losses = async () => said(edge, "the coordinator is away");
    const lossesBefore = await losses();
    for (const link of links) link.holding = "both";
    await surely((repeated) => elsewhere.deleteKey({ keyId: doomed.keyId }, repeated));
    // Longer than a link waits for a silent coordinator, and than anything is served from memory.
    await settles(losses, lossesBefore + links.length, settledMs);
    await settles(() => codeOf(client, probe), "503", settledMs);
    expect(await codeOf(client, doomed.key)).toBe("503");
    for (const link of links) link.holding = undefined;
    const awayMs = await settles(() => codeOf(client, probe), "VALID", settledMs);
    console.log(`back ${Math.round(awayMs)} ms after the cut`);
    expect(awayMs).toBeLessThan(backWithinMs);
    const isRefused = async () => (await codeOf(client, doomed.key)) !== "VALID";
    expect(await isRefused()).toBe(true);
    await settles(() => codeOf(client, doomed.key), "NOT_FOUND", sized(settledMs, 0));
    await feedSettles(edge, 1);
    const before = await lookupsOf(edge);
    expect(await verifyEach(client, others)).toEqual({ VALID: others.length });
    expect(await lookupsOf(edge)).toBe(before);
    expect(await isRefused()).toBe(true);
  });
});
