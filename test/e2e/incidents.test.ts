import { describe, expect, it } from "vitest";
import { findingKinds } from "../../src/doctor/findings.ts";
import { incidentPages, readIncidentPage } from "../support/incident-pages.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { startTestRedis } from "../support/test-redis.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { followPage, repeat } from "./follow-incident-page.ts";

async function keysOf(latchkey: LatchkeyProcess) {
  return rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
}

describe("the incident pages", () => {
  it.each(incidentPages)("%s names findings of doctor, each with a cause and what to do", (heading) => {
    const { command, rows } = readIncidentPage(heading);
    expect(command).toMatch(/^latchkey doctor/);
    expect(rows.length).toBeGreaterThan(4);
    for (const { ids, cause, action } of rows) {
      expect(ids.filter((id) => !Object.hasOwn(findingKinds, id))).toEqual([]);
      expect(Math.min(cause.length, action.length)).toBeGreaterThan(10);
    }
  });
});

describe.runIf(hasPostgres)("somebody on call, with nothing but the page,", () => {
  const environment = () => ({ LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DATA_DIR: tempFolder() });

  it("finds windows that are all in use", async () => {
    const own = { ...environment(), LATCHKEY_WINDOWS_MAX: "1" };
    const latchkey = await startLatchkey(own);
    const keys = await keysOf(latchkey);
    const ratelimit = { async: true, limit: 10_000, duration: 600_000 };
    const made = await Promise.all([1, 2].map(() => keys.createKey({ apiId: "api", ratelimit })));
    repeat(() => Promise.allSettled(made.map(({ key }) => keys.verifyKey({ key }))));
    const { ids, causes } = await followPage("503s", own, latchkey);
    expect(ids).toContain("service-windows-full");
    expect(causes).toMatch(/More keys with rate limits are in use than there are windows/);
  });

  it("finds an edge whose coordinator has another secret", async () => {
    const coordinator = await startLatchkey({
      ...environment(),
      LATCHKEY_ROLE: "coordinator",
      DATABASE_URL: await createTestDatabase(),
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
    });
    const edge = {
      LATCHKEY_ROLE: "edge",
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_COORDINATORS: new URL(coordinator.internalUrl).host,
      LATCHKEY_INTERNAL_SECRET: `${testInternalSecret}-of-last-year`,
    };
    const latchkey = startLatchkey(edge);
    latchkey.catch(() => {});
    // It never serves, so its ports are not told: the page is followed with its configuration.
    const { stdout } = await runLatchkey(["doctor", "--json"], edge);
    const ids = (JSON.parse(stdout) as { findings: { id: string }[] }).findings.map(({ id }) => id);
    expect(ids).toContain("coordinator-refused");
    const row = readIncidentPage("503s").rows.find((each) => each.ids.includes("coordinator-refused"));
    expect(row?.action).toMatch(/another `LATCHKEY_INTERNAL_SECRET`/);
  });

  it("finds that Redis is gone, and then Postgres", async () => {
    const { databaseUrl, server } = await startDatabase();
    const redis = await startTestRedis();
    const own = { ...environment(), DATABASE_URL: databaseUrl, REDIS_URL: redis.url() };
    const latchkey = await startLatchkey(own);
    await redis.remove();
    await expect
      .poll(async () => (await followPage("Limits do not hold", own, latchkey)).ids)
      .toContain("service-redis-away");
    expect((await followPage("Limits do not hold", own, latchkey)).causes).toMatch(/Replicas cannot exchange counts/);

    await server.kill();
    const { ids, causes } = await followPage("Postgres is gone", own);
    expect(ids).toContain("postgres-unreachable");
    expect(causes).toMatch(/No server answers at that address/);
  });
});

async function startDatabase(): Promise<{ databaseUrl: string; server: PostgresServer }> {
  const server = await PostgresServer.start();
  atTestEnd(() => server.remove());
  return { databaseUrl: server.url(), server };
}
