import { randomBytes } from "node:crypto";
import http from "node:http";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Loss, ownLimit, startGuardedApi, startGuardingLatchkey } from "../support/guarded-api.ts";
import { createRefusedKeys, guardedApi } from "../support/keys-by-code.ts";
import type { LatchkeyProcess } from "../support/latchkey-process.ts";
import { type OtlpCollector, startCollector } from "../support/otlp-collector.ts";
import type { ProxyName } from "../support/proxy-binaries.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasProxy } from "../support/test-proxies.ts";

interface Proxy {
  readonly name: ProxyName;
  /** What keeps the proxy from asking twice, and what takes its place to show that it would. */
  readonly controls: [documented: string, broken: string][];
  /** How it answers where its own parameters are wrong. */
  readonly misconfigured: 400 | 503;
}

const proxies: readonly Proxy[] = [
  { name: "nginx", controls: [["proxy_next_upstream off;", ""]], misconfigured: 503 },
  { name: "caddy", controls: [["keepalive off", ""]], misconfigured: 400 },
  {
    name: "haproxy",
    misconfigured: 503,
    controls: [
      ["option httpclose", ""],
      ["retry-on conn-failure", "retry-on conn-failure empty-response"],
    ],
  },
];

interface Answer {
  readonly status: number | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

type Send = (path: string, headers?: http.OutgoingHttpHeaders, method?: string, body?: string) => Promise<Answer>;

/** Sends requests one after the other on one connection. */
function connect(port: number): { send: Send; connections: () => number } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  atTestEnd(() => agent.destroy());
  const sockets = new Set<unknown>();
  const send: Send = (path, headers = {}, method = "GET", body = "") =>
    new Promise((resolve, reject) => {
      const length = body === "" ? {} : { "content-length": Buffer.byteLength(body) };
      const options = { host: "127.0.0.1", port, agent, method, path, headers: { ...headers, ...length } };
      const req = http.request(options, (res) => {
        let text = "";
        res.on("data", (chunk) => {
          text += chunk;
        });
        res.on("end", () => resolve({ status: res.statusCode, headers: res.headers, body: text }));
        res.on("error", reject);
      });
      req.on("socket", (socket) => sockets.add(socket));
      req.on("error", reject).end(body);
    });
  return { send, connections: () => sockets.size };
}

/** A connection that says nothing. One that is refused is destroyed. */
function openSocket(baseUrl: string): net.Socket {
  const socket = net.connect(Number(new URL(baseUrl).port), "127.0.0.1").on("error", () => {});
  atTestEnd(() => socket.destroy());
  return socket.resume();
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const permissions = ["docs.read"];
const preflight = { origin: "http://app.test", "access-control-request-method": "PUT" };

let latchkey: LatchkeyProcess;
let collector: OtlpCollector;
const endings: (() => unknown)[] = [];
beforeAll(async () => {
  const atEnd = (undo: () => unknown) => void endings.unshift(undo);
  collector = await startCollector(atEnd);
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_TRACES_SAMPLER_ARG: "0" };
  latchkey = await startGuardingLatchkey(traced, atEnd);
});
afterAll(() => {
  for (const end of endings) end();
});

for (const { name, controls, misconfigured } of proxies) {
  describe.runIf(hasProxy(name))(`Latchkey behind ${name}, as documented`, () => {
    it("passes requests on whose key is valid, with the key's id and owner in place of forged ones", async () => {
      const { proxyPort, client, received } = await startGuardedApi(name, { latchkey });
      const { send } = connect(proxyPort);
      const owned = await client.keys.createKey({ apiId: guardedApi, permissions, ownerId: "Zoë & 7" });
      const ownerless = await client.keys.createKey({ apiId: guardedApi, permissions });
      const forged = Object.fromEntries(
        ["Key-Id", "Owner-Id", "Code", "Reason", "Root-Key"].map((header) => [`X-Latchkey-${header}`, "forged"]),
      );
      const body = "b".repeat(20_000);
      const first = await send("/v1/things?apiId=another&cost=0", { ...bearer(owned.key), ...forged }, "POST", body);
      expect([first.status, first.body]).toEqual([200, "served"]);
      const second = await send("/", { "x-api-key": ownerless.key, ...forged });
      expect(second.status).toBe(200);

      expect(received).toHaveLength(2);
      expect(received[0]).toMatchObject({ method: "POST", url: "/v1/things?apiId=another&cost=0", body });
      const told = received.map(({ headers }) => [headers["x-latchkey-key-id"], headers["x-latchkey-owner-id"] ?? ""]);
      expect(told).toEqual([
        [owned.keyId, "Zo%C3%AB%20%26%207"],
        [ownerless.keyId, ""],
      ]);
      expect(JSON.stringify(received)).not.toContain("forged");
      expect(received[0]?.headers["x-latchkey-code"]).toBe("VALID");
    });

    it("asks within the trace of the request", async () => {
      const { proxyPort, client } = await startGuardedApi(name, { latchkey });
      const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, permissions });
      const traceId = randomBytes(16).toString("hex");
      const trace = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, tracestate: "a=1" };
      expect((await connect(proxyPort).send("/", { ...bearer(key), ...trace })).status).toBe(200);
      const spans = () => collector.spans().filter((span) => span.traceId === traceId);
      await expect.poll(spans).toMatchObject([{ traceState: "a=1", attributes: { "latchkey.key_id": keyId } }]);
    });

    it("answers every refusal with its status, and lets nothing of it through", async () => {
      const { proxyPort, client, received } = await startGuardedApi(name, { latchkey });
      const { send } = connect(proxyPort);
      for (const { code, status, key } of await createRefusedKeys(client)) {
        const answer = await send("/", bearer(key));
        expect([code, answer.status]).toEqual([code, status]);
        const challenge = status === 401 ? 'Bearer error="invalid_token"' : undefined;
        expect(answer.headers["www-authenticate"]).toBe(challenge);
        const isLimit = code === "RATE_LIMITED";
        expect(Number(answer.headers["retry-after"] ?? 0) > 0).toBe(isLimit);
        expect(answer.headers["ratelimit-policy"]).toBe(isLimit ? '"default";q=1;w=600' : undefined);
      }
      const keyless = await send("/");
      expect([keyless.status, keyless.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
      expect(received).toEqual([]);
    });

    it("says how the limits stand on what passes, and nothing of a key without any", async () => {
      const { proxyPort, client } = await startGuardedApi(name, { latchkey });
      const { send } = connect(proxyPort);
      const ratelimit = { limit: 9, duration: 600_000 };
      const limited = await client.keys.createKey({ apiId: guardedApi, permissions, ratelimit });
      const free = await client.keys.createKey({ apiId: guardedApi, permissions });
      for (const remaining of [8, 7]) {
        const { status, headers } = await send("/", bearer(limited.key));
        expect([status, headers["ratelimit-policy"]]).toEqual([200, '"default";q=9;w=600']);
        expect(headers.ratelimit).toMatch(new RegExp(`^"default";r=${remaining};t=\\d+$`));
      }
      for (const asked of [bearer(free.key), preflight]) {
        const { headers } = await send("/", asked, asked === preflight ? "OPTIONS" : "GET");
        expect([headers.ratelimit, headers["ratelimit-policy"]]).toEqual([undefined, undefined]);
      }
    });

    it("leaves a header about limits alone that the API sets itself", async () => {
      const { proxyPort, client } = await startGuardedApi(name, { latchkey });
      const ratelimit = { limit: 9, duration: 600_000 };
      const { key } = await client.keys.createKey({ apiId: guardedApi, permissions, ratelimit });
      const { headers } = await connect(proxyPort).send("/own-limit", bearer(key));
      expect([headers.ratelimit, headers["ratelimit-policy"]]).toEqual([ownLimit, '"default";q=9;w=600']);
    });

    it("lets the end user choose neither API, cost nor address", async () => {
      const { proxyPort, client } = await startGuardedApi(name, { latchkey });
      const { send } = connect(proxyPort);
      const elsewhere = await client.keys.createKey({ apiId: guardedApi, permissions, ipAllow: ["192.0.2.7"] });
      const forged = { "X-Real-IP": "192.0.2.7", "X-Forwarded-For": "192.0.2.7", Forwarded: "for=192.0.2.7" };
      expect((await send("/?ip=192.0.2.7", { ...bearer(elsewhere.key), ...forged })).status).toBe(403);
      const here = await client.keys.createKey({ apiId: guardedApi, permissions, ipAllow: ["127.0.0.0/8"] });
      expect((await send("/", { ...bearer(here.key), ...forged })).status).toBe(200);
      const another = await client.keys.createKey({ apiId: "another", permissions });
      expect((await send("/?apiId=another", bearer(another.key))).status).toBe(403);
    });

    it("charges one for each request on a connection that stays open, and nothing for refusals and preflights", async () => {
      const { proxyPort, client, received } = await startGuardedApi(name, { latchkey });
      const { send, connections } = connect(proxyPort);
      const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, permissions, remaining: 20 });
      for (let i = 0; i < 10; i++) {
        expect((await send("/", bearer(key))).status).toBe(200);
        expect((await send("/", bearer("wrong"))).status).toBe(401);
        expect((await send("/", preflight, "OPTIONS")).status).toBe(200);
      }
      expect(connections()).toBe(1);
      expect((await client.keys.getKey({ keyId })).remaining).toBe(10);
      expect(received.filter(({ method }) => method === "OPTIONS")).toHaveLength(10);
      // No key was verified for it, so it must not carry the name of one.
      const forged = { "X-Latchkey-Key-Id": "forged", "X-Latchkey-Owner-Id": "forged" };
      expect((await send("/", { ...preflight, ...forged }, "OPTIONS")).status).toBe(200);
      expect(JSON.stringify(received)).not.toContain("forged");
    });

    it("answers 503 while Latchkey is away, to valid keys as to wrong ones", async () => {
      const { proxyPort, client, latchkey: own, received } = await startGuardedApi(name, { isDirect: true });
      const { send } = connect(proxyPort);
      const { key } = await client.keys.createKey({ apiId: guardedApi, permissions });
      expect((await send("/", bearer(key))).status).toBe(200);
      own.kill("SIGKILL");
      await own.exited;
      for (const headers of [bearer(key), bearer("wrong"), {}]) {
        for (let i = 0; i < 4; i++) expect((await send("/", headers)).status).toBe(503);
      }
      expect(received).toHaveLength(1);
    });

    it("answers 503 while Latchkey has too many connections, lets nothing pass, and serves again afterwards", async () => {
      const full = await startGuardingLatchkey({ LATCHKEY_CONNECTIONS_MAX: "20" });
      const { proxyPort, client, received } = await startGuardedApi(name, { latchkey: full, isDirect: true });
      const { send } = connect(proxyPort);
      const { key } = await client.keys.createKey({ apiId: guardedApi, permissions });
      const sockets = Array.from({ length: 40 }, () => openSocket(full.baseUrl));
      await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(10);
      for (let i = 0; i < 4; i++) expect((await send("/", bearer(key))).status).toBe(503);
      expect(received).toEqual([]);

      for (const socket of sockets) socket.destroy();
      // A proxy may leave a replica out for some seconds.
      await expect.poll(async () => (await send("/", bearer(key))).status, { timeout: 30_000 }).toBe(200);
      expect(received).toHaveLength(1);
    });

    it("lets nothing pass while its own parameters are wrong", async () => {
      const { proxyPort, client, received } = await startGuardedApi(name, { latchkey, edit: ["apiId=", "apiID="] });
      const { send } = connect(proxyPort);
      const { key } = await client.keys.createKey({ apiId: guardedApi, permissions });
      expect((await send("/", bearer(key))).status).toBe(misconfigured);
      expect(received).toEqual([]);
    });

    it.each(["killed", "cut off"] as const)("asks once only when a replica is %s before it answers", async (how) => {
      expect(await chargedForLostAnswer(how)).toEqual({ status: 503, charged: 1 });
    });

    it.each(controls)("would ask, and charge, twice without: %s", async (...edit) => {
      expect(await chargedForLostAnswer("killed", edit)).toEqual({ status: 200, charged: 2 });
    });

    async function chargedForLostAnswer(how: Loss, edit?: readonly [string, string]) {
      const { proxyPort, client, loseNextAnswer, lost, allAsked } = await startGuardedApi(name, { latchkey, edit });
      const { send } = connect(proxyPort);
      const warm = await client.keys.createKey({ apiId: guardedApi, permissions });
      // The proxy chooses by chance. Afterwards it has a connection to each replica, if it keeps any.
      while (!allAsked()) expect((await send("/", bearer(warm.key))).status).toBe(200);
      const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, permissions, remaining: 100 });
      loseNextAnswer(how);
      const { status } = await send("/", bearer(key));
      expect(lost()).toBe(1);
      const { remaining = 0 } = await client.keys.getKey({ keyId });
      return { status, charged: 100 - remaining };
    }
  });
}
