import { type Message, toJson } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createRunCall } from "../../src/rpc/call.ts";
import { createEndpoints, type Handlers } from "../../src/rpc/endpoints.ts";
import { createGateway } from "../../src/rpc/gateway.ts";
import { malformedResponse } from "../../src/rpc/http1-response.ts";
import { routedMethodsOf } from "../../src/rpc/json-call.ts";
import { createRequestListener } from "../../src/rpc/request-listener.ts";
import { Guard } from "../../src/server/port/guard.ts";
import { OnePort } from "../../src/server/port/one-port.ts";
import { checkTestRootKey, testRootKey } from "../support/test-root-key.ts";
import { compileWidgets } from "../support/widgets.ts";
import { connectWire, type HttpRequest } from "./exchange.ts";

const widgets = compileWidgets();
const input = widgets.messageOf("GetWidgetRequest");

/** Serves widgets.getWidget, whose answer repeats the request, on a port of its own. */
async function serve() {
  const log = createLog("warn", () => {});
  const metrics = createMetrics();
  const handlers = { getWidget: (asked: Message) => ({ asked: JSON.stringify(toJson(input, asked)) }) };
  const endpoints = createEndpoints(widgets.service, handlers as unknown as Handlers<never>);
  const runCall = createRunCall({ clock: systemClock, log, metrics, checkRootKey: checkTestRootKey });
  const gateway = createGateway(routedMethodsOf(widgets.routes, endpoints, []), runCall);
  const newRequestId = () => "req_0000000000000000000000";
  const onePort = new OnePort({
    listener: createRequestListener(gateway, { newRequestId, log }),
    malformed: (error) => malformedResponse(error, newRequestId()),
    guard: new Guard({ clock: systemClock, log, metrics }),
  });
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  return connectWire(port);
}

const authorization = `Bearer ${testRootKey}`;
const noBody = new Uint8Array();
const path = "/v1/widgets.getWidget";

describe.each(["over1", "over2"] as const)("GET %s", (version) => {
  async function send(parts: Partial<HttpRequest>) {
    const wire = await serve();
    const answer = await wire[version]({ method: "GET", path, headers: { authorization }, body: noBody, ...parts });
    const text = answer.body.toString();
    return { ...answer, text, json: text === "" ? undefined : JSON.parse(text) };
  }

  it("answers with what POST answers, and is not kept by caches", async () => {
    for (const at of [path, "/v1/shelves.getWidget"]) {
      const answer = await send({ path: `${at}?widgetId=a&limit=5` });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.json.asked)).toEqual({ widgetId: "a", limit: 5 });
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    }
    const headers = { authorization, "content-type": "application/json" };
    for (const at of [path, "/v1/widgets.findWidget", `${path}?widgetId=ignored`]) {
      const body = Buffer.from('{"widgetId":"a","secret":"b"}');
      const answer = await send({ method: "POST", path: at, headers, body });
      expect(JSON.parse(answer.json.asked)).toEqual({ widgetId: "a", secret: "b" });
      expect(answer.headers.get("cache-control")).toBeNull();
    }
  });

  it("needs the root key in the header, and tells others nothing of their request", async () => {
    for (const query of [
      "?widgetId=a",
      "?limit=x",
      `?rootKey=${testRootKey}`,
      `?authorization=Bearer+${testRootKey}`,
    ]) {
      const answer = await send({ path: `${path}${query}`, headers: {} });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("cache-control")).toBe("no-store");
    }
    const answer = await send({ path: `${path}?widgetId=a&rootKey=${testRootKey}` });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(testRootKey);
  });

  it("is refused with a body", async () => {
    const answer = await send({ path: `${path}?widgetId=a`, body: Buffer.from("{}") });
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain("a GET has no body");
  });

  it("has an answer without a body for HEAD, with the headers of GET", async () => {
    const get = await send({ path: `${path}?widgetId=a` });
    const head = await send({ method: "HEAD", path: `${path}?widgetId=a` });
    expect(head.text).toBe("");
    expect(head.status).toBe(200);
    expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
    expect((await send({ method: "HEAD", path: `${path}?limit=x` })).status).toBe(400);
  });

  it("is refused when it is longer than a body may be, if not before", async () => {
    const sent = send({ path: `${path}?widgetId=${"a".repeat(70_000)}` });
    const outcome = await sent.then(
      ({ status }) => status,
      () => "no answer",
    );
    expect([400, 431, "no answer"]).toContain(outcome);
  });

  it.each([
    ["PUT", path, "GET, HEAD, POST"],
    ["DELETE", path, "GET, HEAD, POST"],
    ["POST", "/v1/shelves.getWidget", "GET, HEAD"],
    ["GET", "/v1/widgets.findWidget", "POST"],
    ["HEAD", "/v1/widgets.findWidget", "POST"],
  ])("is not %s %s, which is answered with 405 and Allow: %s", async (method, at, allow) => {
    const answer = await send({ method, path: at });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe(allow);
  });
});
