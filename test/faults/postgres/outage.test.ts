import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatKey } from "../../../src/domain/key-format.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { createClient, type KeysClient } from "../../../src/sdk/index.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { hasPostgres } from "../../support/test-database.ts";

/** The deadline of the documentation: within it a use is settled or its caller told that it could not be. */
const answerMs = 500;

async function setUp(postgres: PostgresServer) {
  const { baseUrl, rootKey } = await startTestServer({
    settings: { databaseUrl: new Secret(postgres.url()), usageTimeoutMs: 235 },
  });
  const client = createClient({ baseUrl, rootKey }).keys;
  const plain = await client.createKey({ apiId: "api" });
  const counted = await client.createKey({ apiId: "api", remaining: 1_000_000 });
  await client.verifyKey({ key: plain.key });
  await client.verifyKey({ key: counted.key });
  return { client, plain: plain.key, counted: counted.key, baseUrl };
}

/** The outcome of a verification. Fails if it took too long. */
async function outcomeInTime(client: KeysClient, key: string): Promise<string> {
  const startedMs = performance.now();
  const outcome = await client.verifyKey({ key }).then(
    ({ code }) => code as string,
    (error: { code: string; status?: number }) => `${error.status} ${error.code}`,
  );
  expect(performance.now() - startedMs).toBeLessThan(answerMs);
  return outcome;
}

async function eventually(client: KeysClient, key: string): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const remaining = await client.verifyKey({ key }).then(
      (verified) => verified.remaining,
      () => undefined,
    );
    if (remaining !== undefined) return remaining;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("it did not heal");
}

const unavailable = "503 SERVICE_UNAVAILABLE";
const unknownKey = formatKey(undefined, new Uint8Array(24)).key;

// At once, since each has a Postgres of its own. All of them are there first: their start would make answers late.
describe.runIf(hasPostgres).concurrent("while Postgres", () => {
  const faults: [string, (server: PostgresServer) => unknown, (server: PostgresServer) => unknown][] = [
    ["is killed", (server) => server.kill(), (server) => server.up()],
    ["is stopped", (server) => server.stop(), (server) => server.up()],
    ["hangs", (server) => server.pause(), (server) => server.resume()],
  ];
  const unused: PostgresServer[] = [];
  const started: PostgresServer[] = [];
  beforeAll(async () => {
    started.push(...(await Promise.all([...faults, "not there yet"].map(() => PostgresServer.start()))));
    unused.push(...started);
  });
  afterAll(() => Promise.all(started.map((postgres) => postgres.remove())));

  it.each(faults)(
    "%s, nothing is called invalid, counted keys get 503 in time, and it heals",
    async (_, begin, end) => {
      const postgres = unused.pop() as PostgresServer;
      const { client, plain, counted, baseUrl } = await setUp(postgres);
      await begin(postgres);
      for (let i = 0; i < 5; i++) {
        expect(await outcomeInTime(client, counted)).toBe(unavailable);
        expect(await outcomeInTime(client, plain)).toBe("VALID");
        expect(await outcomeInTime(client, unknownKey)).toBe(unavailable);
      }
      const many = await Promise.all(Array.from({ length: 50 }, () => outcomeInTime(client, counted)));
      expect(new Set(many)).toEqual(new Set([unavailable]));
      await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });
      expect((await fetch(`${baseUrl}/livez`)).status).toBe(200);

      await end(postgres);
      const first = await eventually(client, counted);
      expect(await client.verifyKey({ key: counted })).toMatchObject({ valid: true, remaining: first - 1 });
      expect(await client.verifyKey({ key: unknownKey })).toMatchObject({ code: "NOT_FOUND" });
      expect(await client.createKey({ apiId: "api" })).toHaveProperty("key");
    },
  );

  it("is not there yet, the service is alive, not ready, and answers 503; then it becomes ready", async () => {
    const postgres = unused.pop() as PostgresServer;
    await postgres.kill();
    const settings = { databaseUrl: new Secret(postgres.url()), rootKeys: [] };
    const { baseUrl } = await startTestServer({ settings, waitUntilReady: false });
    const client = createClient({ baseUrl, rootKey: formatKey("lk_root", new Uint8Array(32)).key }).keys;
    const statusOf = async (path: string) => (await fetch(baseUrl + path)).status;

    expect(await statusOf("/livez")).toBe(200);
    expect(await statusOf("/readyz")).toBe(503);
    expect(await outcomeInTime(client, unknownKey)).toBe(unavailable);
    await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });

    await postgres.up();
    while ((await statusOf("/readyz")) !== 200) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await client.verifyKey({ key: unknownKey })).toMatchObject({ code: "NOT_FOUND" });
  });
});
