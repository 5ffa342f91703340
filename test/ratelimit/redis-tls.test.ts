import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { readSettings } from "../../src/config/settings.ts";
import { freePort, runAs } from "../support/local-server.ts";
import { type Certificate, makeCertificate } from "../support/make-certificate.ts";
import { RedisReplica, soon } from "../support/redis-replica.ts";
import { RedisServer } from "../support/redis-server.ts";
import { hasRedis } from "../support/test-redis.ts";

describe.runIf(hasRedis)("a Redis behind TLS", () => {
  let folder: string;
  let ca: Certificate;
  let wrongCa: Certificate;
  let server: RedisServer;
  let url: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    chmodSync(folder, 0o755);
    [ca, wrongCa] = [makeCertificate(folder, "ca"), makeCertificate(folder, "wrong-ca")];
    const own = makeCertificate(folder, "redis", ca);
    if (runAs.uid !== undefined) chownSync(own.key, runAs.uid, runAs.gid);
    const port = await freePort();
    server = await RedisServer.start({
      "tls-port": String(port),
      "tls-cert-file": own.certificate,
      "tls-key-file": own.key,
      "tls-ca-cert-file": ca.certificate,
      "tls-auth-clients": "no",
    });
    url = `rediss://127.0.0.1:${port}`;
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is used where the CA that vouches for it is given", async () => {
    const [a, b] = [1, 2].map((i) => new RedisReplica(url, `${i}`, readFileSync(ca.certificate, "utf8"))) as [
      RedisReplica,
      RedisReplica,
    ];
    for (const replica of [a, b]) await replica.isUp(true);
    await a.tell(3, "k");
    expect(await b.tell(1, "k")).toMatchObject([{ others: 3 }]);
  });

  it.each([
    ["none is given", () => undefined, "SELF_SIGNED_CERT_IN_CHAIN"],
    ["another one is given", () => readFileSync(wrongCa.certificate, "utf8"), "SELF_SIGNED_CERT_IN_CHAIN"],
  ])("is not used where %s, and a line says why", async (_, text, reason) => {
    const replica = new RedisReplica(url, "a", text());
    await vi.waitFor(() => expect(replica.logged.windows).toEqual([`Redis is away: ${reason}`]), soon);
    expect(replica.hub.isReachable).toBe(false);
  });

  it("hurts no process that gives a connection up during its handshake", async () => {
    // At any moment of the handshake. An error without a listener would fail this test run.
    for (let round = 0; round < 150; round++) {
      const replica = new RedisReplica(url, "a");
      await delay((round % 30) / 4);
      replica.hub.close();
      replica.changes.close();
    }
  });

  it("is given its CA by a setting, which names the file and says where it would do nothing", () => {
    const read = (environment: Record<string, string>) =>
      readSettings(environment, (path) => readFileSync(path, "utf8"));
    const environment = { REDIS_URL: url, LATCHKEY_REDIS_CA_FILE: ca.certificate };
    expect(read(environment).settings.redisCa).toBe(readFileSync(ca.certificate, "utf8").trim());
    for (const others of [{ REDIS_URL: "redis://127.0.0.1" }, { REDIS_URL: "" }]) {
      expect(() => read({ ...environment, ...others })).toThrow(
        /^LATCHKEY_REDIS_CA must not be set unless REDIS_URL begins with rediss/,
      );
    }
    expect(() => read({ ...environment, REDIS_URL: "rediss" })).toThrow(/^REDIS_URL must be a URL[^\n]*$/);
  });
});
