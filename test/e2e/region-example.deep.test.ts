import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { substitute } from "../support/documented-configuration.ts";
import { bash, machineWith, readSteps, type Step, startStep } from "../support/documented-steps.ts";
import type { LatchkeyProcess } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";

async function coordinatorsUp({ internalUrl }: Pick<LatchkeyProcess, "internalUrl">, secret: string): Promise<number> {
  const answer = await fetch(`${internalUrl}/metrics`, { headers: { authorization: `Bearer ${secret}` } });
  return sumMetric(await answer.text(), "latchkey_coordinator_up");
}

describe.runIf(hasPostgres)("the example of several regions in docs/operations.md", () => {
  it("works word by word: a key is verified through an edge, over TLS to its coordinators", async () => {
    const [prepare, coordinator, edge, tryIt, ...more] = readSteps("Several regions") as [Step, Step, Step, Step];
    expect(more).toEqual([]);
    const database = { "postgres://latchkey:password@10.0.0.9:5432/latchkey": await createTestDatabase() };
    const [first, second] = [await freePort(), await freePort()];

    const source = tempFolder();
    await bash(source, substitute(prepare.script, { "10.0.0.1": "127.0.0.1", "10.0.0.2": "127.0.0.1" }));
    const secret = (await bash(source, "cat internal-secret")).trim();

    const coordinatorScript = substitute(coordinator.script, database);
    for (const port of [first, second]) {
      await startStep(machineWith(coordinator.files, source, `coordinator-${port}`), coordinatorScript, port);
    }
    const edgeScript = substitute(edge.script, {
      "10.0.0.1:8081": `127.0.0.1:${first}`,
      "10.0.0.2:8081": `127.0.0.1:${second}`,
    });
    const edgeFolder = machineWith(edge.files, source, "edge");
    const serving = await startStep(edgeFolder, edgeScript, 0);
    await vi.waitFor(async () => expect(await coordinatorsUp(serving, secret)).toBe(2), { timeout: 60_000 });

    const addresses = { "http://127.0.0.1:8080": serving.baseUrl, "10.0.0.1:8081": `127.0.0.1:${first}` };
    const tryingFolder = machineWith(tryIt.files, source, "trying");
    const tried = await bash(tryingFolder, substitute(tryIt.script, addresses));
    const [answer = "", metrics = ""] = tried.split(/(?<=\})(?=#)/);
    expect(JSON.parse(answer)).toMatchObject({ valid: true, ratelimit: { limit: 100, remaining: 99 } });
    expect(sumMetric(metrics, "latchkey_internal_refused_total")).toBe(0);

    // The control: an edge that has another CA reaches no coordinator.
    const strangerFolder = machineWith(edge.files, source, "stranger");
    copyFileSync(makeCertificate(source, "other").certificate, join(strangerFolder, "ca.pem"));
    const [PORT, internalPort] = [String(await freePort()), await freePort()];
    // It never says that it serves, and is killed with the test.
    startStep(strangerFolder, edgeScript, internalPort, { PORT }).catch(() => {});
    const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${PORT}${path}`, init);
    await vi.waitFor(async () => expect((await ask("/readyz")).status).toBe(503), { timeout: 60_000 });
    const authorization = `Bearer ${(await bash(source, "cat root-key")).trim()}`;
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ apiId: "demo" });
    const refused = await ask("/v1/keys.createKey", { method: "POST", headers, body });
    expect(await refused.json()).toMatchObject({ error: { code: "SERVICE_UNAVAILABLE" } });
    expect(await coordinatorsUp({ internalUrl: `http://127.0.0.1:${internalPort}` }, secret)).toBe(0);
  });
});
