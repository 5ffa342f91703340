import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { type Certificate, expireCertificate, makeCertificate } from "../support/make-certificate.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { startTestRedis } from "../support/test-redis.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { type DoctorAnswer, runDoctor } from "./run-doctor.ts";

const hourMs = 3_600_000;
const mayMount = spawnSync("unshare", ["-m", "true"]).status === 0;

function embedded(environment: Record<string, string> = {}): Promise<LatchkeyProcess> {
  return startLatchkey({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey, ...environment });
}

const late = "service-event-loop-late";

/** The machine of a test may be so busy that the service is late. Doctor says so, and it is no fault of the test. */
function withoutLateness(answer: DoctorAnswer): DoctorAnswer {
  const findings = answer.findings.filter(({ id }) => id !== late);
  const isOnlyWarning = findings.every(({ severity }) => severity === "note");
  return { ...answer, findings, ids: findings.map(({ id }) => id), code: isOnlyWarning ? 0 : answer.code };
}

async function check(
  { baseUrl, internalUrl }: Pick<LatchkeyProcess, "baseUrl" | "internalUrl">,
  environment: Record<string, string> = {},
): Promise<DoctorAnswer> {
  return withoutLateness(await runDoctor(environment, ["--url", baseUrl, "--internal-url", internalUrl]));
}

function metric({ internalUrl }: LatchkeyProcess, name: string): Promise<number> {
  return readMetric(Number(new URL(internalUrl).port), name);
}

/** A server that answers everything alike, as a service that is ready answers probes. */
async function startServer(server: http.Server | https.Server, headers = {}, status = 200): Promise<number> {
  server.on("request", (_, res: http.ServerResponse) => res.writeHead(status, headers).end('{"status":"ready"}'));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atTestEnd(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe.concurrent("latchkey doctor --url", () => {
  it("finds nothing on a healthy service, an internal port that refuses, and what was shed earlier", async () => {
    const latchkey = await embedded({ LATCHKEY_INTERNAL_SECRET: testInternalSecret, LATCHKEY_CONNECTIONS_MAX: "3" });
    const [healthy, refused, unread] = await Promise.all([
      check(latchkey, { LATCHKEY_INTERNAL_SECRET: testInternalSecret }),
      check(latchkey, { LATCHKEY_INTERNAL_SECRET: "another-secret-of-more-than-32-characters" }),
      check({ ...latchkey, internalUrl: "http://127.0.0.1:1" }),
    ]);
    expect(healthy).toMatchObject({ ids: [], code: 0 });
    expect(healthy.checked.map(({ text }) => text).join("\n")).toMatch(
      / is ready, .*\nlooked for \d+ signs of incidents/,
    );
    expect(refused).toMatchObject({ ids: ["internal-port-refused"], code: 3 });
    expect(refused.findings[0]?.fix).toContain("LATCHKEY_INTERNAL_SECRET");
    expect(unread).toMatchObject({ ids: ["internal-port-unreachable"], code: 3 });
    expect(unread.findings[0]?.fix).toContain("--internal-url");

    const port = Number(new URL(latchkey.baseUrl).port);
    const sockets = Array.from({ length: 6 }, () => net.connect(port, "127.0.0.1").on("error", () => {}));
    await vi.waitFor(async () => expect(await metric(latchkey, "latchkey_shed_total")).toBeGreaterThan(0));
    for (const socket of sockets) socket.destroy();
    await vi.waitFor(async () => {
      const earlier = await check(latchkey, { LATCHKEY_INTERNAL_SECRET: testInternalSecret });
      expect(earlier).toMatchObject({ ids: ["service-shed-earlier"], code: 0 });
    });
  });

  it("finds an address where nothing listens, and a service that is none of ours", async () => {
    const [nobody, stranger] = await Promise.all([
      runDoctor({}, ["--url", "http://127.0.0.1:1", "--internal-url", "http://127.0.0.1:1"]),
      startServer(http.createServer(), {}, 404).then((port) =>
        runDoctor({}, ["--url", `http://localhost:${port}/`, "--internal-url", `http://127.0.0.1:${port}`]),
      ),
    ]);
    expect(nobody).toMatchObject({ ids: ["service-unreachable", "internal-port-unreachable"], code: 1 });
    expect(nobody.findings[0]?.fix).toContain("curl -v http://127.0.0.1:1/livez");
    expect(stranger).toMatchObject({ ids: ["service-unreachable", "internal-port-refused"], code: 1 });
  });

  it("sends no secret in cleartext to another machine", async () => {
    const args = ["doctor", "--url", "http://10.255.255.1:8080", "--internal-url", "http://10.255.255.1:8081"];
    const { code, stderr } = await runLatchkey(args, { LATCHKEY_INTERNAL_SECRET: testInternalSecret });
    expect(code).toBe(2);
    expect(stderr).toContain("the shared secret would be sent in cleartext");
  });

  it("finds a clock that is an hour behind, by the header of an answer", async () => {
    const date = new Date(Date.now() - hourMs).toUTCString();
    const port = await startServer(http.createServer(), { date });
    const url = `http://127.0.0.1:${port}`;
    const answer = await check({ baseUrl: url, internalUrl: url });
    expect(answer).toMatchObject({ ids: ["service-clock"], code: 3 });
    expect(answer.findings[0]).toMatchObject({
      problem: expect.stringMatching(/ 3[56]\d\d s behind/),
      fix: expect.stringContaining("chronyc"),
    });
  });

  it("finds a certificate that is not trusted, and one that ends soon", async () => {
    const files = makeCertificate(tempFolder(), "proxy");
    const [cert, key] = [files.certificate, files.key].map((file) => readFileSync(file));
    const port = await startServer(https.createServer({ cert, key }));
    const args = ["--url", `https://127.0.0.1:${port}`, "--internal-url", `https://127.0.0.1:${port}`];
    const [untrusted, soon] = await Promise.all([
      runDoctor({}, args),
      runDoctor({ NODE_EXTRA_CA_CERTS: files.certificate }, args),
    ]);
    expect(untrusted).toMatchObject({ ids: ["service-untrusted", "internal-port-unreachable"], code: 1 });
    expect(untrusted.findings[0]?.fix).toContain("NODE_EXTRA_CA_CERTS=");
    expect(soon).toMatchObject({ ids: ["certificate-ends-soon"], code: 3 });
  });

  it("names the right fix for a certificate that has expired, and for one of another name", async () => {
    const folder = tempFolder();
    const [expired, elsewhere] = [
      makeCertificate(folder, "expired"),
      makeCertificate(folder, "elsewhere", undefined, "IP:10.0.0.1"),
    ];
    expireCertificate(expired);
    const fixesFor = async ({ certificate, key }: Certificate) => {
      const port = await startServer(https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }));
      const args = ["--url", `https://127.0.0.1:${port}`, "--internal-url", `https://127.0.0.1:${port}`];
      const answer = await runDoctor({ NODE_EXTRA_CA_CERTS: certificate }, args);
      expect(answer).toMatchObject({ ids: ["service-untrusted", "internal-port-unreachable"], code: 1 });
      return answer.findings.map(({ fix }) => fix);
    };
    const [ofExpired, ofElsewhere] = await Promise.all([fixesFor(expired), fixesFor(elsewhere)]);
    expect(ofExpired).toEqual([
      expect.stringMatching(/^Renew it where TLS ends/),
      expect.stringMatching(/^Renew its certificate .* LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY/),
    ]);
    expect(ofElsewhere).toEqual([
      expect.stringMatching(/^Correct --url to a name/),
      expect.stringMatching(/^Correct --internal-url to a name/),
    ]);
  });

  it.runIf(mayMount)("finds a disk that is full, also while nobody asks for a write", async () => {
    const mount = 'mount -t tmpfs -o size=4m,mode=700 none "$LATCHKEY_DATA_DIR" && exec "$0" "$@"';
    const serve = [process.execPath, builtProgram(), "serve"];
    const settings = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey };
    const latchkey = await startLatchkey(settings, ["unshare", "-m", "sh", "-c", mount, ...serve]);
    expect(await metric(latchkey, "latchkey_data_file_up")).toBe(1);
    const { keys } = rawClient({ ...latchkey, rootKey: testRootKey });
    const large = { apiId: "api", meta: { filler: "x".repeat(15_000) } };
    const statuses = new Set<number>();
    while ((await metric(latchkey, "latchkey_data_file_up")) === 1)
      await keys.createKey(large).catch(({ status }: { status: number }) => statuses.add(status));
    expect([...statuses]).toEqual([503]);
    const answer = await check(latchkey);
    expect(answer).toMatchObject({ ids: ["service-data-file-down"], code: 1 });
    expect(answer.findings[0]?.fix).toContain("latchkey doctor with the service's own settings");
  });

  it("finds the certificate of the internal port that ends soon, by its metric", async () => {
    const files = makeCertificate(tempFolder(), "internal");
    const latchkey = await embedded({
      LATCHKEY_INTERNAL_TLS_CERT: files.certificate,
      LATCHKEY_INTERNAL_TLS_KEY: files.key,
    });
    const internalUrl = latchkey.internalUrl.replace("http:", "https:");
    const answer = await check({ ...latchkey, internalUrl }, { LATCHKEY_INTERNAL_CA_FILE: files.certificate });
    expect(answer).toMatchObject({ ids: ["certificate-ends-soon"], code: 3 });
  });
});

describe.runIf(hasPostgres).concurrent("latchkey doctor --url, of a service", () => {
  it("that has lost Postgres, and then Redis", async () => {
    const url = new URL(await createTestDatabase());
    const [link, redis] = await Promise.all([FaultyProxy.start(Number(url.port)), startTestRedis()]);
    url.port = String(link.port);
    const latchkey = await embedded({ DATABASE_URL: url.href, REDIS_URL: redis.url() });
    await vi.waitFor(async () => expect(await metric(latchkey, "latchkey_rate_limit_sync_up")).toBe(1));
    await vi.waitFor(async () => expect(await check(latchkey)).toMatchObject({ ids: [], code: 0 }));

    link.refusing = true;
    link.cutAll();
    await vi.waitFor(async () => expect(await metric(latchkey, "latchkey_database_up")).toBe(0));
    // Redis may be away for a moment where the service gets little processor time.
    const withoutDatabase = await vi.waitFor(async () => {
      const answer = await check(latchkey);
      expect(answer).toMatchObject({ ids: ["service-database-away"], code: 1 });
      return answer;
    });
    expect(withoutDatabase.findings[0]?.fix).toMatch(/^latchkey doctor with the service's own settings/);

    await redis.kill();
    await vi.waitFor(async () => expect(await metric(latchkey, "latchkey_rate_limit_sync_up")).toBe(0));
    expect(await check(latchkey)).toMatchObject({ ids: ["service-database-away", "service-redis-away"], code: 1 });
  });

  it("that is not ready, because it has never found Postgres", async () => {
    const [port, internalPort] = [await freePort(), await freePort()];
    const env = {
      ...{ PATH: process.env.PATH, HOME: tempFolder(), LATCHKEY_DATA_DIR: tempFolder() },
      ...{ PORT: String(port), LATCHKEY_INTERNAL_PORT: String(internalPort) },
      DATABASE_URL: "postgres://latchkey@127.0.0.1:1/latchkey",
    };
    const service = spawn(process.execPath, [builtProgram(), "serve"], { env, stdio: "ignore" });
    atTestEnd(() => service.kill("SIGKILL"));
    await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/livez`));
    // The internal port is the one of the environment: the service is on this machine.
    const settings = { LATCHKEY_INTERNAL_PORT: String(internalPort) };
    const answer = withoutLateness(await runDoctor(settings, ["--url", `http://127.0.0.1:${port}`]));
    expect(answer).toMatchObject({ ids: ["service-not-ready", "service-database-away"], code: 1 });
  });

  it("that has lost one coordinator, and then both", async () => {
    const coordinatorSettings = async () => ({
      LATCHKEY_ROLE: "coordinator",
      LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      DATABASE_URL,
    });
    const DATABASE_URL = await createTestDatabase();
    const one = await embedded(await coordinatorSettings());
    const two = await embedded(await coordinatorSettings());
    const addresses = [one, two].map(({ internalUrl }) => internalUrl.replace("http://", ""));
    const edge = await startLatchkey({
      ...{ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROLE: "edge" },
      ...{ LATCHKEY_COORDINATORS: addresses.join(), LATCHKEY_INTERNAL_SECRET: testInternalSecret },
    });
    const secret = { LATCHKEY_INTERNAL_SECRET: testInternalSecret };
    await vi.waitFor(async () => expect(await check(edge, secret)).toMatchObject({ ids: [], code: 0 }));
    for (const [lost, coordinator] of [one, two].entries()) {
      coordinator.kill("SIGKILL");
      await vi.waitFor(async () => expect(await metric(edge, "latchkey_coordinator_up")).toBe(1 - lost));
      const answer = await check(edge, secret);
      expect(answer).toMatchObject({ ids: Array(lost + 1).fill("service-coordinator-away"), code: 1 });
      expect(answer.findings[0]?.fix).toContain("latchkey doctor with the edge's own settings");
    }
  });
});
