import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { RedisServer } from "../support/redis-server.ts";
import { StrictCluster } from "../support/strict/index.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasRedis } from "../support/test-redis.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { neighbours, restoreDump, unpackArtefact } from "./kept-versions.ts";
import { Fronts } from "./shared-state.ts";

type Command = readonly [string, ...string[]];
const serve = (program: string): Command => [process.execPath, program, "serve"];

describe.runIf(hasPostgres && hasRedis).each(neighbours)(
  "this version beside $name, on data of $dataOf",
  ({ dataOf, unpack }) => {
    const undo: (() => unknown)[] = [];
    const atEnd = (step: () => unknown) => void undo.push(step);
    afterAll(async () => {
      for (const step of undo.reverse()) await step();
    });

    let databaseUrl: string;
    let redis: RedisServer;
    let kept: Command;
    const current = serve(builtProgram());
    beforeAll(async () => {
      kept = serve(unpack(tempFolder(atEnd)));
      databaseUrl = await restoreDump(dataOf);
      redis = await RedisServer.start();
      atEnd(() => redis.remove());
    });

    /** One of these commands each, on one database or on one of its own. */
    async function startReplicas(commands: readonly Command[], urlOf: () => Promise<string>): Promise<string[]> {
      const starting = commands.map(async (command) => {
        const own = { DATABASE_URL: await urlOf(), REDIS_URL: redis.url(), LATCHKEY_DATA_DIR: tempFolder(atEnd) };
        const environment = { ...own, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_USAGE_TIMEOUT_MS: "20000" };
        return (await startLatchkey(environment, command, atEnd)).baseUrl;
      });
      return Promise.all(starting);
    }

    /** An edge of one version whose coordinator is of the other. */
    async function startEdge(edge: Command, coordinator: Command): Promise<string> {
      const programs = { edge, coordinator };
      const cluster = await StrictCluster.start({
        edges: 1,
        coordinators: 1,
        databaseUrl,
        patient: true,
        programs,
        atEnd,
      });
      await cluster.untilConnected();
      return cluster.edge(0).baseUrl;
    }

    describe.each([
      ["replicas", () => startReplicas([kept, current], async () => databaseUrl)],
      [
        "edges with coordinators of the other version",
        () => Promise.all([startEdge(kept, current), startEdge(current, kept)]),
      ],
    ] as const)("%s of both", (_, start) => {
      let fronts: Fronts;
      beforeAll(async () => {
        fronts = new Fronts(await start());
      });

      it("spend a counter exactly", async () => expect(await fronts.spendCounter()).toEqual([]));
      it("never exceed a strict limit", async () => expect(await fronts.exhaustStrictLimit()).toEqual([]));
      it("know of each other's changes and deletions", async () => expect(await fronts.changeKeys()).toEqual([]));
    });

    it("would be found out if they did not share what they count and change", async () => {
      const fronts = new Fronts(await startReplicas([kept, current], createEmptyDatabase), false);
      expect(await fronts.spendCounter()).toContainEqual(expect.stringMatching(/^80 of 50 uses passed/));
      expect(await fronts.exhaustStrictLimit()).toContainEqual(expect.stringMatching(/^60 passed a limit of 30/));
      expect(await fronts.changeKeys()).toContainEqual(expect.stringMatching(/^still VALID/));
    });

    it("would be found out if the protocol between edge and coordinator were another", async () => {
      const other = unpack(tempFolder(atEnd));
      let replaced = 0;
      for (const name of readdirSync(dirname(other)).filter((each) => each.endsWith(".js"))) {
        const path = join(dirname(other), name);
        const text = readFileSync(path, "utf8");
        const changed = text.replaceAll("latchkey.core.v2", "latchkey.core.v3");
        if (changed !== text) replaced++;
        writeFileSync(path, changed);
      }
      expect(replaced).toBeGreaterThan(0);
      const secret = { LATCHKEY_INTERNAL_SECRET: testInternalSecret };
      const store = { DATABASE_URL: databaseUrl, LATCHKEY_ROOT_KEY: testRootKey };
      const coordinator = await startLatchkey({ LATCHKEY_ROLE: "coordinator", ...secret, ...store }, current, atEnd);
      const edge = {
        LATCHKEY_ROLE: "edge",
        LATCHKEY_COORDINATORS: new URL(coordinator.internalUrl).host,
        ...secret,
      };
      let log = () => "";
      // It never says that it serves.
      void startLatchkey(edge, serve(other), (stop, stderr) => {
        atEnd(stop);
        log = stderr;
      }).catch(() => {});
      const refused = /"reason":"UNIMPLEMENTED","advice":"[^"]+","msg":"the coordinator is away"/;
      await vi.waitFor(() => expect(log()).toMatch(refused), { timeout: 60_000 });
      expect(log()).not.toContain('"msg":"serving"');
    });
  },
);

describe.runIf(hasPostgres).each([
  ["an edge of 0.2.0 and a coordinator of this version", "edge"],
  ["an edge of this version and a coordinator of 0.2.0", "coordinator"],
] as const)("%s", (_, old) => {
  it("do not work together, and both say what to do", async () => {
    const kept = serve(unpackArtefact("0.2.0", tempFolder()));
    const current = serve(builtProgram());
    const secret = { LATCHKEY_INTERNAL_SECRET: testInternalSecret };
    const store = { DATABASE_URL: await createEmptyDatabase(), LATCHKEY_ROOT_KEY: testRootKey };
    const [edge, coordinator] = old === "edge" ? [kept, current] : [current, kept];
    const started = await startLatchkey({ LATCHKEY_ROLE: "coordinator", ...secret, ...store }, coordinator);
    const address = new URL(started.internalUrl).host;
    let log = () => "";
    void startLatchkey({ LATCHKEY_ROLE: "edge", LATCHKEY_COORDINATORS: address, ...secret }, edge, (stop, stderr) => {
      atTestEnd(stop);
      log = stderr;
    }).catch(() => {});
    await vi.waitFor(() => expect(log()).toContain('"reason":"UNIMPLEMENTED"'), { timeout: 60_000 });
    const newOne = old === "edge" ? started.stderr : log;
    await vi.waitFor(() => expect(newOne()).toContain("update edges and coordinators together"));
  });
});
