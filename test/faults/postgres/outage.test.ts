import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatKey } from "../../../src/domain/key-format.ts";
import { Secret } from "../../../src/domain/secret.ts";
import type { KeysClient } from "../../../src/sdk/index.ts";
import { createSurely } from "../../support/create-surely.ts";
import { sized, withRoom } from "../../support/deep.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { codeOf } from "../../support/news/fronts.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { rawClient } from "../../support/raw-client.ts";
import { rememberKey } from "../../support/remember-key.ts";
import { settles } from "../../support/settles.ts";
import { watchStandstill } from "../../support/standstill.ts";
import { hasPostgres } from "../../support/test-database.ts";

/**
 * At full size the deadline of the documentation: within it a use is settled or its caller told that it could not be. Else only
 * the end of a hang.
 */
const answerMs = sized(60_000, withRoom(500));

/** On a busy machine the first answers after an outage may be 503s, too. */
const healedMs = 60_000;

async function setUp(postgres: PostgresServer) {
  const { baseUrl, rootKey } = await startTestServer({
    settings: { databaseUrl: new Secret(postgres.url()), usageTimeoutMs: 235 },
  });
  const client = rawClient({ baseUrl, rootKey }).keys;
  const plain = await createSurely(client, { apiId: "api" });
  const counted = await createSurely(client, { apiId: "api", remaining: 1_000_000 });
  await rememberKey([client], plain.key);
  await rememberKey([client], counted.key);
  return { client, plain: plain.key, counted: counted.key, baseUrl };
}

/** Answers the outcome of a verification. Fails if it took too long while this process, in which the service runs, could run. */
function askInTime(client: KeysClient): (key: string) => Promise<string> {
  const standstillMs = watchStandstill();
  return async (key) => {
    const startedMs = performance.now();
    const outcome = await client.verifyKey({ key }).then(
      ({ code }) => code as string,
      (error: { code: string; status?: number }) => `${error.status} ${error.code}`,
    );
    const answeredMs = performance.now();
    expect(answeredMs - startedMs - standstillMs(startedMs, answeredMs)).toBeLessThan(answerMs);
    return outcome;
  };
}

/** What is left of the key, when a use of it is settled again. */
async function remainingOnceHealed(client: KeysClient, key: string): Promise<number> {
  let remaining: number | undefined;
  const use = async () => {
    remaining = await client.verifyKey({ key }).then(
      (verified) => verified.remaining,
      () => undefined,
    );
    return remaining !== undefined;
  };
  await settles(use, true, healedMs);
  return remaining as number;
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
    `%s, nothing is called invalid, counted keys get 503${sized("", " in time")}, and it heals`,
    async (_, begin, end) => {
      const postgres = unused.pop() as PostgresServer;
      const { client, plain, counted, baseUrl } = await setUp(postgres);
      const outcomeOf = askInTime(client);
      await begin(postgres);
      for (let i = 0; i < sized(2, 5); i++) {
        expect(await outcomeOf(counted)).toBe(unavailable);
        expect(await outcomeOf(plain)).toBe("VALID");
        expect(await outcomeOf(unknownKey)).toBe(unavailable);
      }
      const many = await Promise.all(Array.from({ length: 50 }, () => outcomeOf(counted)));
      expect(new Set(many)).toEqual(new Set([unavailable]));
      await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });
      expect((await fetch(`${baseUrl}/livez`)).status).toBe(200);

      await end(postgres);
      const first = await remainingOnceHealed(client, counted);
      expect(await remainingOnceHealed(client, counted)).toBeLessThan(first);
      await settles(() => codeOf(client, unknownKey), "NOT_FOUND", healedMs);
      expect(await createSurely(client, { apiId: "api" })).toHaveProperty("key");
    },
  );

  it("is not there yet, the service is alive, not ready, and answers 503; then it becomes ready", async () => {
    const postgres = unused.pop() as PostgresServer;
    await postgres.kill();
    const settings = { databaseUrl: new Secret(postgres.url()), rootKeys: [] };
    const { baseUrl } = await startTestServer({ settings, waitUntilReady: false });
    const client = rawClient({ baseUrl, rootKey: formatKey("lk_root", new Uint8Array(32)).key }).keys;
    const statusOf = async (path: string) => (await fetch(baseUrl + path)).status;

    expect(await statusOf("/livez")).toBe(200);
    expect(await statusOf("/readyz")).toBe(503);
    expect(await askInTime(client)(unknownKey)).toBe(unavailable);
    await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });

    await postgres.up();
    while ((await statusOf("/readyz")) !== 200) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await client.verifyKey({ key: unknownKey })).toMatchObject({ code: "NOT_FOUND" });
  });
});
