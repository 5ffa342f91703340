import { describe, expect, it, vi } from "vitest";
import { startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { createRedisDatabase } from "../support/test-redis.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { healthyEnvironment, runDoctor } from "./run-doctor.ts";

const perMinute = { limit: 10, duration: 60_000 };

function startReplica(environment: Record<string, string>) {
  return startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey, ...environment });
}

describe.runIf(hasPostgres).concurrent("latchkey doctor, of replicas that run", () => {
  it("finds local limits of two replicas that nothing brings together", async () => {
    const DATABASE_URL = await createTestDatabase();
    const environment = { ...healthyEnvironment(), DATABASE_URL };
    const [one, other] = await Promise.all([startReplica({ DATABASE_URL }), startReplica({ DATABASE_URL })]);
    const { keys } = rawClient({ ...one, rootKey: testRootKey });
    await keys.createKey({ apiId: "api", ratelimit: { ...perMinute, async: false } });
    const named = { name: "strict", ...perMinute, async: false };
    const { keyId } = await keys.createKey({ apiId: "api", ratelimits: [named] });
    expect(await runDoctor(environment), "strict limits alone").toMatchObject({ ids: [], code: 0 });

    await keys.updateKey({ keyId, ratelimits: [named, { name: "local", ...perMinute }] });
    const apart = await runDoctor(environment);
    expect(apart).toMatchObject({ ids: ["local-limits-apart"], code: 3 });
    expect(apart.findings[0]).toMatchObject({
      problem: expect.stringMatching(/^2 replicas use postgres:/),
      fix: expect.stringContaining("REDIS_URL"),
    });
    const REDIS_URL = await createRedisDatabase();
    expect(await runDoctor({ ...environment, REDIS_URL }), "with Redis").toMatchObject({ ids: [], code: 0 });

    other.kill("SIGKILL");
    await vi.waitFor(async () => expect(await runDoctor(environment)).toMatchObject({ ids: [], code: 0 }));
  });

  it("counts connections that the service has as free, whatever name they have", async () => {
    const role = `doctor_${process.pid}_${Date.now()}`;
    const url = new URL(await createTestDatabase());
    // As many as the service takes, and one for doctor.
    await query(url.href, `CREATE ROLE ${role} LOGIN CONNECTION LIMIT 16; GRANT ALL ON SCHEMA public TO ${role}`);
    await query(url.href, `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
    url.username = role;
    for (const search of ["", "?application_name=billing"]) {
      const DATABASE_URL = `${url.href}${search}`;
      const replica = await startReplica({ DATABASE_URL });
      const answer = await runDoctor({ ...healthyEnvironment(), DATABASE_URL });
      expect(answer).toMatchObject({ ids: [], code: 0 });
      expect(answer.checked.map(({ text }) => text)).toContain(
        "16 connections free or its own, of which this service takes up to 15",
      );
      replica.kill("SIGKILL");
      await replica.exited;
    }
  });
});
