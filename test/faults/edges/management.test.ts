import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { LatchkeyClient } from "../../../src/sdk/index.ts";
import { openSqliteStore } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { startEdgeFront } from "../../core/edge-front.ts";
import { startTestCoordinator } from "../../core/test-coordinator.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { latchkeyOf } from "../../support/clients.ts";
import { sized } from "../../support/deep.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { StrictCluster } from "../../support/strict/index.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/* Keys are managed through edges, while coordinators are killed and restarted, and links to them are cut. */

const callers = 4;
const changesOfEach = sized(30, 150);

/** Edges, and a way to break what is between them and the store. */
interface Site {
  clientOf(edge: number): LatchkeyClient;
  breakOnce(random: SeededRandom): Promise<string>;
}

/** Two edges and two coordinators on one database, each a process of its own. */
async function startProcesses(): Promise<Site> {
  const databaseUrl = await createTestDatabase();
  const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, patient: true, databaseUrl });
  await cluster.untilConnected();
  return {
    clientOf: (edge) => latchkeyOf("sdk", cluster.edge(edge).baseUrl, testRootKey),
    async breakOnce(random) {
      const what = random.pick(["killed", "restarted", "cut"] as const);
      const index = random.integer(0, 1);
      if (what === "cut") await cutSome(random.pick(cluster.links.flat()), random);
      else {
        cluster.coordinator(index).kill(what === "killed" ? "SIGKILL" : "SIGTERM");
        await cluster.coordinator(index).exited;
        await cluster.replaceCoordinator(index);
      }
      await cluster.untilConnected();
      return what;
    },
  };
}

/** Two edges and a coordinator on the embedded store, in this process: as a process of its own it would need Postgres. */
async function startOnEmbeddedStore(): Promise<Site> {
  const store = await openSqliteStore({
    file: join(tempFolder(), "latchkey.db"),
    clock: systemClock,
    metrics: createMetrics(),
    log: createLog("error", () => {}),
    onDeath(cause) {
      throw cause;
    },
  });
  onTestFinished(() => store.close());
  let coordinator = await startTestCoordinator({ store });
  const links = await Promise.all([0, 1].map(() => FaultyProxy.start(coordinator.port)));
  const edges = await Promise.all(links.map(({ port }) => startEdgeFront([`127.0.0.1:${port}`])));
  return {
    clientOf: (edge) => latchkeyOf("sdk", edges[edge]?.baseUrl ?? "", testRootKey),
    async breakOnce(random) {
      const what = random.pick(["restarted", "cut"] as const);
      if (what === "cut") await cutSome(random.pick(links), random);
      else {
        await coordinator.stop();
        coordinator = await startTestCoordinator({ store });
        for (const link of links) link.targetPort = coordinator.port;
      }
      await vi.waitFor(() => expect(edges.every(({ core }) => core.coordinators.hasLedger)).toBe(true));
      return what;
    },
  };
}

/** Cuts the link in the place of an answer, once at least. */
async function cutSome(link: FaultyProxy, random: SeededRandom): Promise<void> {
  const { cuts } = link;
  link.onReply = () => (random.chance(0.2) ? "cut" : "pass");
  for (let waited = 0; link.cuts === cuts && waited < 500; waited++) await delay(10);
  link.onReply = () => "pass";
}

const isOutage = ({ code }: { code?: unknown }) =>
  code === "SERVICE_UNAVAILABLE" || code === "NETWORK_ERROR" || code === "TIMEOUT" || code === "TOO_MANY_REQUESTS";

/** Asks again until there is an answer. Everything but an outage is one. */
async function untilAnswered<Answer>(ask: () => Promise<Answer>, onOutage: () => void = () => {}): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isOutage(error as { code?: unknown })) throw error;
      onOutage();
      await delay(20);
    }
  }
}

class Caller {
  readonly #client: LatchkeyClient;
  readonly #name: string;
  /** Keys whose creation was answered, under their names. */
  readonly created = new Map<string, string>();
  /** Keys whose deletion was answered. */
  readonly deleted = new Set<string>();
  outages = 0;

  constructor(client: LatchkeyClient, name: string) {
    this.#client = client;
    this.#name = name;
  }

  /** Creates a key and changes it, each exactly once however often it is asked for, and uses it at once. */
  async change(index: number, counted: string): Promise<string[]> {
    const name = `${this.#name} ${index}`;
    const once = (what: string) => ({ idempotencyKey: `${what}-${name.replaceAll(" ", "-")}` });
    const onOutage = () => void this.outages++;
    const { keys } = this.#client;
    const { keyId, key } = await untilAnswered(
      () => keys.createKey({ apiId: "api", name, remaining: 1000 }, once("create")),
      onOutage,
    );
    this.created.set(name, keyId);
    const problems: string[] = [];
    const { code } = await untilAnswered(() => keys.verifyKey({ key }));
    if (code !== "VALID") problems.push(`${name} is ${code} after its creation`);
    await untilAnswered(
      () => keys.updateRemaining({ keyId: counted, op: "increment", value: 1 }, once("count")),
      onOutage,
    );
    await untilAnswered(() => keys.updateKey({ keyId, enabled: false }, once("disable")), onOutage);
    const disabled = await untilAnswered(() => keys.verifyKey({ key }));
    if (disabled.code !== "DISABLED") problems.push(`${name} is ${disabled.code} after it was disabled`);
    if (index % 3 === 0) {
      await untilAnswered(() => keys.deleteKey({ keyId }, once("delete")), onOutage);
      this.deleted.add(keyId);
    }
    return problems;
  }
}

/** Breaks one thing after the other until it is told to stop, and six things at least. */
async function breakThings(site: Site, isOver: () => boolean): Promise<Record<string, number>> {
  const random = new SeededRandom(31);
  const times: Record<string, number> = {};
  for (let broken = 0; broken < 6 || !isOver(); broken++) {
    const what = await site.breakOnce(random);
    times[what] = (times[what] ?? 0) + 1;
    await delay(100);
  }
  return times;
}

async function allKeys({ keys }: LatchkeyClient): Promise<{ keyId: string; name?: string | undefined }[]> {
  const found = [];
  let cursor: string | undefined;
  do {
    const page = await untilAnswered(() => keys.listKeys({ apiId: "api", limit: 100, ...(cursor && { cursor }) }));
    found.push(...page.keys);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

describe.each([
  { name: "the embedded store", start: startOnEmbeddedStore, isHere: true },
  { name: "Postgres", start: startProcesses, isHere: hasPostgres },
])("changes through edges whose coordinators have $name", ({ name, start, isHere }) => {
  it.runIf(isHere)("are made exactly once, are in force when they are answered, and are never lost", async () => {
    const site = await start();
    const { clientOf } = site;
    const { keyId: counted } = await clientOf(0).keys.createKey({ apiId: "counted", remaining: 0 });
    const all = Array.from({ length: callers }, (_, index) => new Caller(clientOf(index % 2), `caller ${index}`));
    let isOver = false;
    const breaking = breakThings(site, () => isOver);
    const problems = await Promise.all(
      all.map(async (caller) => {
        const found: string[] = [];
        for (let index = 0; index < changesOfEach; index++) found.push(...(await caller.change(index, counted)));
        return found;
      }),
    );
    isOver = true;
    const times = await breaking;
    const outages = all.reduce((sum, caller) => sum + caller.outages, 0);
    console.log(name, JSON.stringify({ ...times, outages }));
    expect(problems.flat()).toEqual([]);
    const stored = await allKeys(clientOf(0));
    const expected = all.flatMap(({ created, deleted }) =>
      [...created].filter(([, keyId]) => !deleted.has(keyId)).map(([name, keyId]) => `${name}: ${keyId}`),
    );
    expect(stored.map(({ name, keyId }) => `${name}: ${keyId}`).sort()).toEqual(expected.sort());
    const { remaining } = await untilAnswered(() => clientOf(1).keys.getKey({ keyId: counted }));
    expect(remaining).toBe(callers * changesOfEach);
    // Otherwise nothing was shown.
    expect(outages).toBeGreaterThan(0);
  });
});

describe("a change through an edge", () => {
  /** What a key is that was remembered, right after it was disabled. */
  async function codeAfterDisabling(options?: { isDeaf: boolean }): Promise<string | undefined> {
    const { address } = await startTestCoordinator();
    const { baseUrl } = await startEdgeFront([address], options);
    const { keys } = latchkeyOf("sdk", baseUrl, testRootKey);
    const { keyId, key } = await keys.createKey({ apiId: "api" });
    expect((await keys.verifyKey({ key })).code).toBe("VALID");
    await keys.updateKey({ keyId, enabled: false });
    return (await keys.verifyKey({ key })).code;
  }

  it("is in force there when it is answered, and would not be if the edge ignored what the answer says", async () => {
    expect(await codeAfterDisabling()).toBe("DISABLED");
    expect(await codeAfterDisabling({ isDeaf: true })).toBe("VALID");
  });
});
