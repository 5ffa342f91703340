import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { startServer } from "../../src/server/start.ts";
import { isDeep } from "../support/deep.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { freePort } from "../support/local-server.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/* The order in which the parts of a process stop: no part loses another that it still needs. */

/** Callers first; then what they have caused is finished; then its way to the store, and the store. */
const frontOrder = ["public port", "internal port", "start", "change feed", "messages about changes", "rate limits"];
const workersOrder = [
  "public port",
  "internal port",
  "start",
  "workers",
  "link to workers",
  "folder of the socket",
  "messages about changes",
  "change feed",
];
const coreOrder = ["tidying", "ledgers", "store"];
const lastInAllRoles = "event loop delay";
const coordinatorOrder = [
  "public port",
  "internal port",
  "start",
  "messages about changes",
  "change feed",
  ...coreOrder,
  lastInAllRoles,
];
const edgeOrder = [...frontOrder, "links to coordinators", lastInAllRoles];
const allOrder = (workers: number) => [...(workers > 1 ? workersOrder : frontOrder), ...coreOrder, lastInAllRoles];

function stoppedParts(logLines: readonly string[]): string[] {
  const lines = logLines.map((line) => JSON.parse(line) as { msg: string; part: string });
  return lines.filter(({ msg }) => msg === "stopped").map(({ part }) => part);
}

/** Starts a server whose public port is taken. Answers what was stopped after the start had failed. */
async function failToStart(settings: Partial<Settings>): Promise<string[]> {
  const taken = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  atTestEnd(() => taken.close());
  const { port } = taken.address() as net.AddressInfo;
  const logLines: string[] = [];
  const starting = startServer({
    settings: {
      ...readSettings({}, () => "").settings,
      port,
      host: "127.0.0.1",
      internalPort: 0,
      dataDir: tempFolder(),
      windowsMax: 1000,
      freeWindowsMax: 1000,
      rootKeys: settings.role === "edge" ? [] : [new Secret(testRootKey)],
      ...settings,
    },
    clock: systemClock,
    random: createSystemRandom(),
    log: createLog("debug", (line) => logLines.push(line)),
    onFatal: (cause) => {
      throw cause;
    },
  });
  await expect(starting).rejects.toThrow("EADDRINUSE");
  return stoppedParts(logLines);
}

/** What keeps this process from ending, by kind. */
function handles(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/** Kinds of which a server has some, and this test's own process has none that come and go. */
const kinds = ["TCPServerWrap", "TCPSocketWrap", "MessagePort", "ProcessWrap", "FSReqPromise"];

async function untilAsBefore(before: Record<string, number>): Promise<void> {
  for (let tries = 0; ; tries++) {
    // Also lets what begins after the end begin. It is over when this process is looked at, and is not counted itself.
    await delay(50);
    const now = handles();
    const more = kinds.filter((kind) => (now[kind] ?? 0) > (before[kind] ?? 0));
    // A timer of before is over by now: any that is left is the server's.
    if (now.Timeout !== undefined) more.push("Timeout");
    if (more.length === 0) return;
    // A minute or more, which ends a hang.
    if (tries === 1200) expect(more).toEqual([]);
  }
}

if (!isDeep) {
  describe("the parts of a process stop in the reverse order of their start", () => {
    it.each([1, 2])("role all, with workers: %i", async (workers) => {
      const before = handles();
      const server = await startTestServer({ settings: { workers } });
      await server.stop();
      expect(stoppedParts(server.logLines)).toEqual(allOrder(workers));
      await untilAsBefore(before);
    });

    it.runIf(hasPostgres)("role coordinator, and role edge", async () => {
      const before = handles();
      const databaseUrl = new Secret(await createTestDatabase());
      const coordinator = await startTestServer({ settings: { role: "coordinator", databaseUrl } });
      const coordinators = [`127.0.0.1:${coordinator.internalPort}`];
      const edge = await startTestServer({ settings: { role: "edge", coordinators } });
      await edge.stop();
      expect(stoppedParts(edge.logLines)).toEqual(edgeOrder);
      await coordinator.stop();
      expect(stoppedParts(coordinator.logLines)).toEqual(coordinatorOrder);
      await untilAsBefore(before);
    });
  });

  describe("after a start that failed because its port is taken, what was started is stopped, in the reverse order", () => {
    it.each([1, 2])("role all, with workers: %i", async (workers) => {
      const before = handles();
      expect(await failToStart({ workers })).toEqual(allOrder(workers).slice(1));
      await untilAsBefore({ ...before, TCPServerWrap: (before.TCPServerWrap ?? 0) + 1 });
    });

    it.runIf(hasPostgres)("role coordinator", async () => {
      const before = handles();
      const databaseUrl = new Secret(await createTestDatabase());
      expect(await failToStart({ role: "coordinator", databaseUrl })).toEqual(coordinatorOrder.slice(1));
      await untilAsBefore({ ...before, TCPServerWrap: (before.TCPServerWrap ?? 0) + 1 });
    });
  });
}

// These wait for what cannot be reached.
if (isDeep) {
  describe("after a start that failed because its port is taken, what was started is stopped, in the reverse order", () => {
    it("role edge, while no coordinator can be reached", async () => {
      const before = handles();
      const coordinators = [`127.0.0.1:${await freePort()}`];
      expect(await failToStart({ role: "edge", coordinators })).toEqual(edgeOrder.slice(1));
      await untilAsBefore({ ...before, TCPServerWrap: (before.TCPServerWrap ?? 0) + 1 });
    });

    it("role coordinator, while no database can be reached", async () => {
      const before = handles();
      const databaseUrl = new Secret(`postgres://someone@127.0.0.1:${await freePort()}/none`);
      // It would wait for the database to have root keys.
      const parts = await failToStart({ role: "coordinator", databaseUrl, rootKeys: [] });
      expect(parts).toEqual(coordinatorOrder.slice(1));
      await untilAsBefore({ ...before, TCPServerWrap: (before.TCPServerWrap ?? 0) + 1 });
    });
  });
}
