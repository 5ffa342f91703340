import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { readMetric } from "../../support/read-metric.ts";
import { hasPostgres } from "../../support/test-database.ts";

const untilMs = 15_000;

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + untilMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error("it did not come to that");
    await delay(50);
  }
}

describe.runIf(hasPostgres)("the gauge of the database", () => {
  it("is 0 until it is there and while it takes no changes, though nobody asks anything, and the log says why", async () => {
    const postgres = await PostgresServer.start();
    onTestFinished(() => postgres.remove());
    await postgres.stop();
    const settings = { databaseUrl: new Secret(postgres.url()) };
    const { internalPort, ready, logLines } = await startTestServer({ settings, waitUntilReady: false });
    const isUp = () => readMetric(internalPort, "latchkey_database_up");
    await until(() => logLines.some((line) => line.includes("waiting for the database")));
    expect(await isUp()).toBe(0);
    await postgres.up();
    await ready;
    expect(await isUp()).toBe(1);

    postgres.configure({ default_transaction_read_only: "on" });
    postgres.reload();
    await until(async () => (await isUp()) === 0);
    postgres.configure({ default_transaction_read_only: "off" });
    postgres.reload();
    await until(async () => (await isUp()) === 1);
    const lines = logLines.map((line) => JSON.parse(line) as { msg: string; reason?: string });
    const told = lines.filter(({ msg }) => msg.includes("the database"));
    expect(told.map(({ msg }) => msg)).toEqual([
      "waiting for the database",
      "the database is away",
      "the database is back",
    ]);
    expect(told.map(({ reason }) => reason)).toEqual(["ECONNREFUSED", expect.stringMatching(/^25006 /), undefined]);
  });
});
