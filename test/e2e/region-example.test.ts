import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { bash, machineWith, readSteps, type Step, startStep, substitute } from "../support/documented-steps.ts";
import type { LatchkeyProcess } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { startTestRedis } from "../support/test-redis.ts";

async function coordinatorsUp({ internalUrl }: LatchkeyProcess, secret: string): Promise<number> {
  const answer = await fetch(`${internalUrl}/metrics`, { headers: { authorization: `Bearer ${secret}` } });
  return sumMetric(await answer.text(), "latchkey_coordinator_up");
}

describe.runIf(hasPostgres)("the example of several regions in docs/operations.md", () => {
  it("works word by word: a key is verified through an edge, over TLS to its coordinators", async () => {
    const [prepare, coordinator, edge, tryIt, ...more] = readSteps("Several regions") as [Step, Step, Step, Step];
    expect(more).toEqual([]);
    const [databaseUrl, redis] = [await createTestDatabase(), await startTestRedis()];
    const database = { "postgres://latchkey:password@10.0.0.9:5432/latchkey": databaseUrl };
    const [first, second] = [await freePort(), await freePort()];

    const source = tempFolder();
    await bash(source, substitute(prepare.script, { "10.0.0.1": "127.0.0.1", "10.0.0.2": "127.0.0.1" }));
    const secret = (await bash(source, "cat internal-secret")).trim();

    const coordinatorScript = substitute(coordinator.script, database);
    for (const port of [first, second]) {
      await startStep(machineWith(coordinator.files, source, `coordinator-${port}`), coordinatorScript, port);
    }
    const edgeScript = substitute(edge.script, {
      ...database,
      "redis://10.0.0.9:6379": redis.url(),
      "10.0.0.1:8081": `127.0.0.1:${first}`,
      "10.0.0.2:8081": `127.0.0.1:${second}`,
    });
    const edgeFolder = machineWith(edge.files, source, "edge");
    const serving = await startStep(edgeFolder, edgeScript, 0);
    await vi.waitFor(async () => expect(await coordinatorsUp(serving, secret)).toBe(2), { timeout: 20_000 });

    const addresses = { "http://127.0.0.1:8080": serving.baseUrl, "10.0.0.1:8081": `127.0.0.1:${first}` };
    const [answer = "", metrics = ""] = (await bash(edgeFolder, substitute(tryIt.script, addresses))).split(
      /(?<=\})(?=#)/,
    );
    expect(JSON.parse(answer)).toMatchObject({ valid: true, ratelimit: { limit: 100, remaining: 99 } });
    expect(sumMetric(metrics, "latchkey_internal_refused_total")).toBe(0);

    // The control: an edge that has another CA reaches no coordinator.
    const strangerFolder = machineWith(edge.files, source, "stranger");
    copyFileSync(makeCertificate(source, "other").certificate, join(strangerFolder, "ca.pem"));
    const stranger = await startStep(strangerFolder, edgeScript, 0);
    const refused = substitute(tryIt.script, { ...addresses, "http://127.0.0.1:8080": stranger.baseUrl });
    await vi.waitFor(() => expect(stranger.stderr()).toContain("the coordinator is away"), { timeout: 20_000 });
    // Without -e: curl refuses the certificate in the last line.
    const [refusal = ""] = (await bash(strangerFolder, `set +e\n${refused}\ntrue`)).split("\n");
    expect(JSON.parse(refusal)).toMatchObject({ error: { code: "SERVICE_UNAVAILABLE" } });
    expect(await coordinatorsUp(stranger, secret)).toBe(0);
  });
});
