import { describe, expect, it, onTestFinished } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { PublicApiDeps } from "../../src/server/public-api.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { TestClock } from "../support/test-clock.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { connectWire } from "./exchange.ts";

const canary = "cnry-7391";
const root = { authorization: `Bearer ${testRootKey}` };
const json = { "content-type": "application/json" };

interface Line {
  readonly msg: string;
  readonly requestId?: string;
  readonly unlogged?: number;
}

async function start(override: Partial<PublicApiDeps> = {}) {
  const clock = new TestClock();
  const api = composePublicApi(() => override, { clock, logLevel: "info" });
  const port = await api.onePort.listen(0, "127.0.0.1");
  onTestFinished(() => api.onePort.close(0));
  const lines = () => api.logLines.map((line) => JSON.parse(line) as Line);
  return { ...connectWire(port), clock, lines, text: () => api.logLines.join("") };
}

const post = (path: string, body: string, headers: Record<string, string> = {}) => {
  return { method: "POST", path, headers: { ...json, ...headers }, body: Buffer.from(body) };
};

describe("an answer with an error", () => {
  const outage = { keys: { findByDigest: () => Promise.reject(new Unavailable("the store is away")) } };
  const known = { method: "KeysService/VerifyKey", protocol: "json" };

  it.each([
    [400, "BAD_REQUEST", known, post("/v1/keys.verifyKey", `{"${canary}":1}`)],
    [401, "UNAUTHORIZED", { method: "KeysService/CreateKey" }, post("/v1/keys.createKey", `{"apiId":"${canary}"}`)],
    [401, "UNAUTHORIZED", {}, post("/v1/keys.createKey", "{}", { authorization: `Bearer ${canary}` })],
    [404, "NOT_FOUND", {}, post(`/v1/${canary}`, "{}")],
    [405, "METHOD_NOT_ALLOWED", {}, { ...post("/v1/keys.createKey", "{}"), method: "PUT" }],
    [415, "UNSUPPORTED_MEDIA_TYPE", {}, post("/v1/keys.createKey", "{}", { "content-type": `text/${canary}` })],
    [503, "SERVICE_UNAVAILABLE", known, post("/v1/keys.verifyKey", `{"key":"${canary}"}`)],
    [400, "BAD_REQUEST", { protocol: "connect" }, post("/latchkey.v1.KeysService/VerifyKey", `{"${canary}":1}`)],
  ])("of %i has its request id in the log, and nothing that the caller has sent", async (status, code, about, sent) => {
    for (const over of ["over1", "over2"] as const) {
      const api = await start(status === 503 ? outage : {});
      const answer = await api[over](sent);
      expect(answer.status).toBe(status);
      const requestId = answer.headers.get("x-request-id");
      const found = api.lines().filter((line) => line.requestId === requestId);
      const line = { level: "info", msg: "an error was answered", requestId, code, unlogged: 0, ...about };
      expect(found).toContainEqual(expect.objectContaining(line));
      expect(api.text()).not.toContain(canary);
    }
  });

  it.each([
    ["a 400", post("/v1/keys.createKey", `{"${canary}":1}`, root), "BAD_REQUEST"],
    ["a 404", post("/v1/keys.getKey", `{"keyId":"${canary}"}`, root), "NOT_FOUND"],
  ])("of a valid root key, such as %s, has one line, that of its call", async (_, sent, code) => {
    const api = await start();
    const answer = await api.over1(sent);
    const found = api.lines().filter(({ requestId }) => requestId === answer.headers.get("x-request-id"));
    expect(found).toEqual([expect.objectContaining({ msg: "call", code })]);
  });

  it("is logged ten times a second for each code, and the next line counts the others", async () => {
    const { over1, clock, lines } = await start();
    const fail = (path: string) => over1(post(path, "{}"));
    for (let i = 0; i < 25; i++) await fail("/nowhere");
    const unloggedOf = () =>
      lines().flatMap(({ msg, unlogged }) => (msg === "an error was answered" ? [unlogged] : []));
    expect(unloggedOf()).toEqual(Array(10).fill(0));
    // Another code has lines of its own.
    await fail("/v1/keys.verifyKey");
    clock.advance(1000);
    await fail("/nowhere");
    expect(unloggedOf().slice(10)).toEqual([0, 15]);
  });
});
