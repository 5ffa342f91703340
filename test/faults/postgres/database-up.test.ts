import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { DatabaseWatch } from "../../../src/server/database-watch.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { readMetric } from "../../support/read-metric.ts";
import { hasPostgres } from "../../support/test-database.ts";

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error("it did not come to that");
    await delay(10);
  }
}

describe.runIf(hasPostgres)("latchkey_database_up", () => {
  it("is 0 until the database is there and while it takes no changes, and the log says why", async () => {
    const postgres = await PostgresServer.start();
    onTestFinished(() => postgres.remove());
    await postgres.stop();
    const settings = { databaseUrl: new Secret(postgres.url()) };
    const server = await startTestServer({ settings, waitUntilReady: false });
    const isUp = () => readMetric(server.internalPort, "latchkey_database_up");
    await until(() => server.logLines.some((line) => /"database":"postgres:.+"waiting for the database"/.test(line)));
    expect(await isUp()).toBe(0);
    await postgres.up();
    await server.ready;
    expect(await isUp()).toBe(1);

    // The same watch, asking more often than a service does.
    const metrics = createMetrics();
    const logLines: string[] = [];
    const engine = openPgEngine({ url: postgres.url(), connectionsMax: 1 });
    const watch = new DatabaseWatch({ metrics, log: createLog("info", (line) => logLines.push(line)) }, 20);
    onTestFinished(() => {
      watch.stop();
      return engine.close();
    });
    watch.start(engine.check);
    const shows = async (value: number) => (await metrics.render()).includes(`\nlatchkey_database_up ${value}\n`);
    expect(await shows(1)).toBe(true);
    postgres.configure({ default_transaction_read_only: "on" });
    postgres.reload();
    await until(() => shows(0));
    postgres.configure({ default_transaction_read_only: "off" });
    postgres.reload();
    await until(() => shows(1));
    await postgres.kill();
    await until(() => shows(0));
    const told = logLines.map((line) => JSON.parse(line) as { msg: string; reason?: string });
    expect(told.map(({ msg }) => msg)).toEqual([
      "the database is away",
      "the database is back",
      "the database is away",
    ]);
    expect(told[0]?.reason).toMatch(/^25006 /);
  });
});
