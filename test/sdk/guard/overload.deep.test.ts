import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { failuresMax } from "../../../src/domain/failures-by-address.ts";
import { createClient } from "../../../src/sdk/index.ts";
import { RawSocket } from "../../faults/hostile/raw-socket.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { startLatchkey } from "../../support/latchkey-process.ts";
import { rawClient } from "../../support/raw-client.ts";
import { readMetric } from "../../support/read-metric.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import { type Answer, frameworks } from "./frameworks.ts";

/* An API in each framework, while the service does not verify its keys: it is full, or the API's root key is wrong. */

/** Lets the service's writer wait for its file as long as a test holds it. It would give up after five seconds. */
const patientWriter = `
  import { syncBuiltinESMExports } from "node:module";
  import sqlite from "node:sqlite";
  const { DatabaseSync } = sqlite;
  sqlite.DatabaseSync = class extends DatabaseSync {
    constructor(file, options) { super(file, { ...options, timeout: 600_000 }); }
  };
  syncBuiltinESMExports();`;

/**
 * A service in a process of its own, and two keys with uses to count. The keys were made by another process before: this one has
 * had no caller and no connection yet.
 */
async function startService(environment: Record<string, string>) {
  const dataDir = tempFolder();
  const before = await startTestServer({ settings: { dataDir } });
  const create = async () => (await rawClient(before).keys.createKey({ apiId: "weather", remaining: 1000 })).key;
  const [key, other] = [await create(), await create()];
  await before.stop();
  const { baseUrl, internalUrl } = await startLatchkey({
    LATCHKEY_DATA_DIR: dataDir,
    LATCHKEY_ROOT_KEY: testRootKey,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patientWriter)}`,
    ...environment,
  });
  const portOf = (url: string) => Number(new URL(url).port);
  const metric = (name: string) => readMetric(portOf(internalUrl), name);
  return { dataDir, baseUrl, port: portOf(baseUrl), key, other, metric };
}

/** What a route and its log were told. */
function observe() {
  const causes: string[] = [];
  const seen = { passed: 0, causes };
  const log = (_: string, cause: unknown) => void causes.push((cause as { code: string }).code);
  const onPassed = () => {
    seen.passed++;
  };
  return { seen, options: { log, onPassed } };
}

/** A time-out would hide what the service answers on a busy machine. */
const patient = { timeoutMs: 60_000 };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const times = 3;

describe.each(Object.entries(frameworks))("a route behind %s", (name, start) => {
  /** Nothing of what the service has said is in it but the request id. */
  function expectUnavailable({ status, headers, body }: Answer): void {
    const error = { error: { code: "UNAVAILABLE", message: expect.any(String), requestId: expect.any(String) } };
    // Over Connect the error is the framework's.
    expect([status, body]).toEqual([503, name === "connect" ? undefined : error]);
    const told = ["www-authenticate", "retry-after", "ratelimit", "x-request-id"].map((each) => headers.get(each));
    expect(told).toEqual([null, null, null, expect.any(String)]);
  }

  it("answers 503 while too many calls wait in the service, lets none pass, and serves again afterwards", async () => {
    const service = await startService({ LATCHKEY_CALLS_MAX: "1" });
    const { key, baseUrl, metric } = service;
    const { seen, options } = observe();
    const client = createClient({ baseUrl, apiId: "weather", ...patient });
    const ask = await start(client, options);
    // The service may be writing something of its own.
    const file = new DatabaseSync(join(service.dataDir, "latchkey.db"), { timeout: 60_000 });
    onTestFinished(() => {
      if (file.isOpen) file.close();
    });

    // Another caller has the only place, and waits for a commit that cannot begin.
    file.exec("BEGIN IMMEDIATE");
    const waiting = client.keys.verifyKey({ key: service.other });
    await expect.poll(() => metric("latchkey_calls_waiting")).toBe(1);
    for (let i = 0; i < times; i++) expectUnavailable(await ask(bearer(key)));
    expect(seen).toEqual({ passed: 0, causes: Array(times).fill("SERVICE_UNAVAILABLE") });
    expect(await metric('latchkey_shed_total{what="call"}')).toBe(times);
    expect(await metric("latchkey_calls_waiting")).toBe(1);

    file.close();
    expect(await waiting).toMatchObject({ valid: true, remaining: 999 });
    expect((await ask(bearer(key))).status).toBe(200);
    expect([seen.passed, seen.causes.length]).toEqual([1, times]);
    // Refused requests were not charged.
    expect(await client.keys.verifyKey({ key })).toMatchObject({ remaining: 998 });
  });

  it("answers 503 while the service has too many connections, lets none pass, and serves again afterwards", async () => {
    const { key, baseUrl, port, metric } = await startService({ LATCHKEY_CONNECTIONS_MAX: "1" });
    const { seen, options } = observe();
    const ask = await start(createClient({ baseUrl, apiId: "weather", ...patient }), options);
    const inside = new RawSocket(port).say("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    onTestFinished(() => inside.hangUp());
    expect(await inside.listen()).toContain("200 OK");

    for (let i = 0; i < times; i++) expectUnavailable(await ask(bearer(key)));
    expect(seen).toEqual({ passed: 0, causes: Array(times).fill("SERVICE_UNAVAILABLE") });
    expect(await metric('latchkey_shed_total{what="connection"}')).toBe(times);

    inside.hangUp();
    await expect.poll(async () => (await ask(bearer(key))).status).toBe(200);
    expect(seen.passed).toBe(1);
  });

  it("answers 503 while its root key is wrong, also when the service answers 429 and outages are let pass, and serves with the right one", async () => {
    const { key, baseUrl, metric } = await startService({ LATCHKEY_VERIFY_AUTH: "required" });
    const { seen, options } = observe();
    const allowing = { ...patient, onUnavailable: "allow" } as const;
    const wrong = await start(createClient({ baseUrl, rootKey: "not-a-root-key", ...allowing }), options);
    for (let i = 0; i <= failuresMax; i++) expectUnavailable(await wrong(bearer(key)));
    expect(seen).toEqual({ passed: 0, causes: [...Array(failuresMax).fill("UNAUTHORIZED"), "TOO_MANY_REQUESTS"] });
    expect(await metric('latchkey_verifications_total{code="VALID"}')).toBe(0);

    const right = await start(createClient({ baseUrl, rootKey: testRootKey, ...allowing }), options);
    expect((await right(bearer(key))).status).toBe(200);
    expectUnavailable(await wrong(bearer(key)));
    expect([seen.passed, seen.causes.length]).toEqual([1, failuresMax + 2]);
  });
});
