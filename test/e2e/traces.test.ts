import { once } from "node:events";
import http from "node:http";
import { describe, expect, it, vi } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { createClient } from "../../src/sdk/index.ts";
import { connectWire, type HttpRequest } from "../rpc/exchange.ts";
import { encode, protocols } from "../rpc/protocols.ts";
import { frameworks } from "../sdk/guard/frameworks.ts";
import { latchkeyOf } from "../support/clients.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { createRefusedKeys, guardedApi } from "../support/keys-by-code.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { type CollectedSpan, startCollector } from "../support/otlp-collector.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric, sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const outcome = "latchkey.outcome";

/** A service that is traced, and its collector. Stopping the service sends what is left. */
async function startTraced(settings: Partial<Settings> = {}) {
  const collector = await startCollector();
  const server = await startTestServer({ settings: { otlpEndpoint: collector.endpoint, ...settings } });
  const collected = async () => {
    await server.stop();
    return collector.spans();
  };
  const client = rawClient({ baseUrl: server.baseUrl, rootKey: server.rootKey });
  return { collector, server, client, collected };
}

/** The trace context of a caller whose trace has this number. */
function callerOf(number: number, flags = "01") {
  const traceId = number.toString(16).padStart(32, "a");
  return { traceId, spanId: "00f067aa0ba902b7", header: `00-${traceId}-00f067aa0ba902b7-${flags}` };
}

function ofTrace(spans: readonly CollectedSpan[], number: number): CollectedSpan[] {
  return spans.filter(({ traceId }) => traceId === callerOf(number).traceId);
}

describe("a traced service", () => {
  it("sends one span for each call of every protocol, as a child of the caller's", async () => {
    const { server, client, collected, collector } = await startTraced();
    const { key, keyId } = await client.keys.createKey({ apiId: "api" });
    const wire = connectWire(server.port);
    const verifyOver = (protocol: (typeof protocols)[number], headers: HttpRequest["headers"]) => ({
      http: protocol.http,
      request: {
        method: "POST",
        path: protocol.pathOf("verifyKey"),
        headers: { "content-type": protocol.contentType, ...headers },
        body: encode(protocol, "verifyKey", { key }),
      },
    });
    const [json] = protocols as [(typeof protocols)[number]];
    const authz = { method: "GET", path: "/v1/authz", headers: { "x-api-key": key }, body: new Uint8Array() };
    const ways: readonly { readonly http: 1 | 2; readonly request: HttpRequest; readonly protocol: string }[] = [
      ...protocols.map((each) => ({ ...verifyOver(each, {}), protocol: each.name.replace(/[+ ].*/, "") })),
      { ...verifyOver(json, { "content-type": "application/json; charset=utf-8" }), protocol: "json" },
      { http: 1, request: authz, protocol: "authz" },
      { http: 2, request: authz, protocol: "authz" },
    ];
    const read = await readMetric(server.internalPort, 'latchkey_http1_requests_total{way="by_hand"}');
    for (const [i, { http, request }] of ways.entries()) {
      const headers = { ...request.headers, traceparent: callerOf(i).header, tracestate: `vendor=${i}` };
      const answer = await wire[`over${http}`]({ ...request, headers });
      expect(answer.status).toBe(200);
    }
    // Else the fast path would not be among them.
    expect(await readMetric(server.internalPort, 'latchkey_http1_requests_total{way="by_hand"}')).toBe(read + 1);
    await latchkeyOf("grpc-js", server.baseUrl, server.rootKey).keys.verifyKey({ key });

    const spans = await collected();
    const systems: Record<string, string> = { json: "http", authz: "http", connect: "connect_rpc" };
    for (const [i, { protocol }] of ways.entries()) {
      const system = systems[protocol] ?? "grpc";
      expect(ofTrace(spans, i), `${protocol} ${i}`).toEqual([
        {
          traceId: callerOf(i).traceId,
          spanId: expect.stringMatching(/^[\da-f]{16}$/),
          parentSpanId: callerOf(i).spanId,
          traceState: `vendor=${i}`,
          name: "latchkey.v1.KeysService/VerifyKey",
          kind: "SPAN_KIND_SERVER",
          startNanos: expect.any(BigInt),
          endNanos: expect.any(BigInt),
          isError: false,
          attributes: {
            "rpc.system": system,
            "rpc.service": "latchkey.v1.KeysService",
            "rpc.method": "VerifyKey",
            ...(system === "grpc" && { "rpc.grpc.status_code": "0" }),
            [outcome]: "VALID",
            "latchkey.protocol": protocol,
            "latchkey.key_id": keyId,
            "latchkey.request_id": expect.stringMatching(/^req_/),
          },
          resource: { "service.name": "latchkey", "service.instance.id": expect.stringMatching(/:\d+$/) },
        },
      ]);
    }
    const own = spans.filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(own.map(({ name }) => name)).toEqual([
      "latchkey.v1.KeysService/CreateKey",
      "latchkey.v1.KeysService/VerifyKey",
    ]);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(ways.length + 2);
    for (const { startNanos, endNanos } of spans) {
      expect(endNanos).toBeGreaterThan(startNanos);
      expect(Math.abs(Number(startNanos / 1_000_000n) - Date.now())).toBeLessThan(600_000);
    }
    for (const { url, headers } of collector.requests) {
      expect([url, headers["content-type"]]).toEqual(["/v1/traces", "application/json"]);
    }
  });

  it("tells the true outcome of each call: of refusals, and of errors with their type", async () => {
    const { server, client, collected } = await startTraced({ windowsMax: 2 });
    const refused = await createRefusedKeys(client);
    await client.keys.createKey({ apiId: guardedApi }, {});
    const asked = { apiId: guardedApi, permissions: "docs.read" };
    const post = (method: string, body: object, number: number, rootKey = testRootKey) =>
      fetch(`${server.baseUrl}/v1/${method}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${rootKey}`,
          traceparent: callerOf(number).header,
        },
        body: JSON.stringify(body),
      });
    for (const [i, { key }] of refused.entries()) await post("keys.verifyKey", { ...asked, key }, i);
    const limit = { namespace: "n", identifier: "i", limit: 1, duration: 600_000 };
    const others = [
      () => post("keys.createKey", { apiId: "" }, 100),
      () => post("keys.createKey", { apiId: "api" }, 101, "not a root key"),
      () => post("keys.getKey", { keyId: "key_none" }, 102),
      () => post("ratelimits.limit", limit, 103),
      () => post("ratelimits.limit", limit, 104),
      () => fetch(`${server.baseUrl}/v1/authz`, { headers: { traceparent: callerOf(105).header } }),
    ];
    for (const ask of others) await ask();
    // Every window is in use: this is an outage.
    const [, { key }] = await Promise.all([
      client.keys.createKey({ apiId: "api" }),
      client.keys.createKey({ apiId: "api", ratelimit: { limit: 9, duration: 600_000 } }),
    ]);
    const { key: third } = await client.keys.createKey({ apiId: "api", ratelimit: { limit: 9, duration: 600_000 } });
    await post("keys.verifyKey", { key }, 106);
    expect((await post("keys.verifyKey", { key: third }, 107)).status).toBe(503);

    const spans = await collected();
    for (const [i, { code, keyId }] of refused.entries()) {
      const [span] = ofTrace(spans, i);
      expect(span?.attributes).toMatchObject({ [outcome]: code, ...(keyId && { "latchkey.key_id": keyId }) });
      expect(span).toMatchObject({ isError: false });
      expect(span?.attributes).not.toHaveProperty("error.type");
    }
    const failed = [
      [100, "BAD_REQUEST"],
      [101, "UNAUTHORIZED"],
      [102, "NOT_FOUND"],
      [105, "UNAUTHORIZED"],
      [107, "SERVICE_UNAVAILABLE"],
    ] as const;
    for (const [number, code] of failed) {
      expect(ofTrace(spans, number), code).toMatchObject([
        { isError: code === "SERVICE_UNAVAILABLE", attributes: { [outcome]: code, "error.type": code } },
      ]);
    }
    expect([103, 104, 106].map((number) => ofTrace(spans, number)[0]?.attributes[outcome])).toEqual([
      "OK",
      "RATE_LIMITED",
      "VALID",
    ]);
  });

  it("follows its caller's decision, and decides by the ratio where there is none", async () => {
    const { server, collected } = await startTraced({ traceRatio: 0 });
    const verify = (headers: Record<string, string>) =>
      fetch(`${server.baseUrl}/v1/authz`, { headers: { "x-api-key": "none", ...headers } });
    await verify({ traceparent: callerOf(1).header });
    await verify({ traceparent: callerOf(2, "00").header });
    await verify({ traceparent: "malformed" });
    await verify({});
    expect((await collected()).map(({ traceId }) => traceId)).toEqual([callerOf(1).traceId]);
  });

  it("takes two traceparents for none, whoever reads the request", async () => {
    const { server, collected } = await startTraced();
    const wire = connectWire(server.port);
    const two = [callerOf(1).header, callerOf(2).header];
    const body = Buffer.from('{"key":"none"}');
    for (const type of ["application/json", "application/json; charset=utf-8"]) {
      const headers = { "content-type": type, traceparent: two };
      await wire.over1({ method: "POST", path: "/v1/keys.verifyKey", headers, body });
    }
    const spans = await collected();
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([undefined, undefined]);
  });

  it("sends the headers of its settings, and none of their values elsewhere", async () => {
    const token = "a-token-of-the-collector";
    const { server, collector, collected } = await startTraced({
      otlpHeaders: new Secret(`authorization=Bearer%20${token},x-tenant=one`),
      serviceName: "keys",
    });
    collector.status = 401;
    await fetch(`${server.baseUrl}/v1/authz`, { headers: { "x-api-key": "none" } });
    const [span] = await collected();
    expect(span?.resource).toMatchObject({ "service.name": "keys" });
    expect(collector.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${token}`, "x-tenant": "one" });
    const printed = server.logLines.join("");
    expect(printed).toContain("traces could not be exported");
    expect(printed).toContain("status 401");
    expect(printed).not.toContain(token);
  });
});

// They mostly wait.
describe.concurrent("a traced process", () => {
  it("exports from each of its workers, and at the end of the process what is left", async () => {
    const collector = await startCollector();
    const latchkey = await startLatchkey({
      LATCHKEY_DATA_DIR: tempFolder(),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_WORKERS: "2",
      LATCHKEY_DRAIN_MS: "0",
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.endpoint}/elsewhere`,
    });
    const metrics = async () => (await fetch(`${latchkey.internalUrl}/metrics`)).text();
    // Over a connection of its own: workers take them in turns.
    const verify = async (number: number) => {
      const headers = { "x-api-key": "none", traceparent: callerOf(number).header };
      const [answer] = await once(http.get(`${latchkey.baseUrl}/v1/authz`, { headers, agent: false }), "response");
      expect((answer as http.IncomingMessage).resume().statusCode).toBe(401);
    };
    let sent = 0;
    while (sent < 40) await verify(++sent);
    await vi.waitFor(async () => {
      expect(sumMetric(await metrics(), 'latchkey_trace_spans_total{event="exported"}')).toBe(sent);
    });
    // Each thread has a connection of its own to the collector.
    expect(new Set(collector.requests.map(({ port }) => port)).size).toBeGreaterThan(1);
    await verify(++sent);
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    expect(collector.spans().length).toBe(sent);
    expect(ofTrace(collector.spans(), sent)).toMatchObject([{ attributes: { [outcome]: "NOT_FOUND" } }]);
    expect(new Set(collector.requests.map(({ url }) => url))).toEqual(new Set(["/elsewhere"]));
  });

  it("serves its calls while the collector is away, and tells of the spans that are lost", async () => {
    const { server, collector } = await startTraced();
    await collector.close();
    for (let i = 0; i < 20; i++) {
      const answer = await fetch(`${server.baseUrl}/v1/authz`, { headers: { "x-api-key": "none" } });
      expect(answer.status).toBe(401);
    }
    await server.stop();
    const [line, ...more] = server.logLines.filter((each) => each.includes("traces could not be exported"));
    expect(line).toContain("ECONNREFUSED");
    expect(more.length).toBeLessThan(3);
  });
});

it("a guarded API hands the trace of its request on to the service, in every framework", async () => {
  const { server, client, collected } = await startTraced({ traceRatio: 0 });
  const { key } = await client.keys.createKey({ apiId: "api" });
  const authorization = `Bearer ${key}`;
  const openTelemetry = Symbol.for("opentelemetry.js.api.1");
  for (const [i, protect] of Object.values(frameworks).entries()) {
    const ask = await protect(createClient({ baseUrl: server.baseUrl, apiId: "api" }), {});
    const answer = await ask({ authorization, traceparent: callerOf(i).header, tracestate: "a=1" });
    expect(answer.status).toBe(200);
    expect((await ask({ authorization, traceparent: "malformed\u00e9" })).status).toBe(200);
    // OpenTelemetry's SDK would add one of its own.
    Object.assign(globalThis, { [openTelemetry]: {} });
    try {
      await ask({ authorization, traceparent: callerOf(100 + i).header });
    } finally {
      Reflect.deleteProperty(globalThis, openTelemetry);
    }
  }
  const children = Object.keys(frameworks).map((_, i) => ({
    traceId: callerOf(i).traceId,
    parentSpanId: callerOf(i).spanId,
    traceState: "a=1",
  }));
  expect(await collected()).toMatchObject(children);
});
