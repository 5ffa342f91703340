import net from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { outcomeStatus } from "../../gen/latchkey/v1/client.ts";
import { failuresMax } from "../../src/domain/failures-by-address.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { PublicApiDeps } from "../../src/server/public-api.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { createRefusedKeys, guardedApi } from "../support/keys-by-code.ts";
import { rawClient } from "../support/raw-client.ts";
import { sumMetric } from "../support/read-metric.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { connectWire, type HeaderValues, type HttpAnswer } from "./exchange.ts";

const paths = [
  { name: "HTTP/1.1 by hand", fastPath: true, over: "over1" },
  { name: "HTTP/1.1 by Node", fastPath: false, over: "over1" },
  { name: "HTTP/2", fastPath: true, over: "over2" },
] as const;
const [byHand] = paths;
const limitedRootKey = "root-key-for-another-api-0123456789abcdef";
const powerlessRootKey = "root-key-that-cannot-verify-0123456789abcd";

async function start(path: (typeof paths)[number] = byHand, override: Partial<PublicApiDeps> = {}) {
  const api = composePublicApi(
    () => ({
      fastPath: path.fastPath,
      checkRootKey(presented) {
        const all = unlimitedRootKey("root_test");
        if (presented.reveal() === testRootKey) return all;
        if (presented.reveal() === limitedRootKey) return { ...all, apiIds: ["another"] };
        if (presented.reveal() === powerlessRootKey) return { ...all, permissions: ["keys.read"] };
        return undefined;
      },
      ...override,
    }),
    { logLevel: "debug" },
  );
  const port = await api.onePort.listen(0, "127.0.0.1");
  onTestFinished(() => api.onePort.close(0));
  const wire = connectWire(port);
  const ask = (query: string, headers: HeaderValues = {}, method = "GET", body = "") =>
    wire[path.over]({ method, path: `/v1/authz${query}`, headers, body: Buffer.from(body) });
  const client = rawClient({ baseUrl: `http://127.0.0.1:${port}`, rootKey: testRootKey });
  const calls = async (code: string) => {
    const labels = `method="KeysService/VerifyKey",protocol="authz",code="${code}"`;
    return sumMetric(await api.metrics.render(), `latchkey_call_seconds_count{${labels}}`);
  };
  return { port, ask, client, calls, ...api };
}

/** Sends these bytes, and answers what came until the server closed the connection. */
function exchange(port: number, bytes: string): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    let text = "";
    const socket = net.connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
    onTestFinished(() => void socket.destroy());
  });
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const told = ({ headers }: HttpAnswer) =>
  ["code", "key-id", "owner-id", "reason"].map((name) => headers.get(`x-latchkey-${name}`));

describe.each(paths)("/v1/authz over $name", (path) => {
  it("answers 200 to every HTTP method, without a body, and tells key and owner percent-encoded", async () => {
    const { ask, client } = await start(path);
    const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, ownerId: "Zoë / 7\n" });
    for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]) {
      const answer = await ask("", bearer(key), method);
      expect([method, answer.status, answer.body.length]).toEqual([method, 200, 0]);
      expect(told(answer)).toEqual(["VALID", keyId, "Zo%C3%AB%20%2F%207%0A", ""]);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    }
  });

  it("answers every refusal with its status and its reason, and with all headers", async () => {
    const { ask, client } = await start(path);
    const refused = await createRefusedKeys(client);
    expect(refused.map(({ code }) => code).sort()).toEqual(
      Object.keys(outcomeStatus)
        .filter((code) => code !== "VALID")
        .sort(),
    );
    for (const { code, status, key, keyId = "" } of refused) {
      const answer = await ask(`?apiId=${guardedApi}&permissions=docs.read`, bearer(key));
      const verified = await client.keys.verifyKey({ key, apiId: guardedApi, permissions: "docs.read" });
      expect([answer.status, answer.body.length]).toEqual([status, 0]);
      expect(told(answer)).toEqual([code, keyId, "", encodeURIComponent(verified.reason?.message ?? "")]);
      const challenge = status === 401 ? 'Bearer error="invalid_token"' : null;
      expect(answer.headers.get("www-authenticate")).toBe(challenge);
      expect(answer.headers.get("ratelimit-policy")).toBe(code === "RATE_LIMITED" ? '"default";q=1;w=600' : null);
    }
  });

  it("goes on with a connection after bodies, which it does not read", async () => {
    const { ask, client } = await start(path);
    const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, remaining: 4 });
    for (const body of ["{}", "x".repeat(5000), "y".repeat(200_000), ""]) {
      expect((await ask("", bearer(key), "POST", body)).status).toBe(200);
    }
    expect((await client.keys.getKey({ keyId })).remaining).toBe(0);
  });
});

describe("/v1/authz", () => {
  it("finds the key in Authorization: Bearer, else in X-API-Key", async () => {
    const { ask, client } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    expect((await ask("", { "x-api-key": key })).status).toBe(200);
    expect((await ask("", { authorization: "Basic abc", "x-api-key": key })).status).toBe(200);
    expect((await ask("", { ...bearer("wrong"), "x-api-key": key })).status).toBe(401);
    expect((await ask("", { authorization: `bearer  ${key} ` })).status).toBe(200);
  });

  it("answers 401 and a challenge where there is no key, and counts the call", async () => {
    const { ask, calls } = await start();
    for (const headers of [{}, { "x-api-key": "" }, { authorization: "Bearer" }]) {
      const answer = await ask("", headers);
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
      expect(told(answer)).toEqual(["MISSING_KEY", "", "", "an%20API%20key%20is%20needed"]);
    }
    expect(await calls("UNAUTHORIZED")).toBe(3);
  });

  it("takes a text that is too long for a key for no key at all", async () => {
    const { ask } = await start(paths[2]);
    const answer = await ask("", { "x-api-key": "k".repeat(16_400) });
    expect([answer.status, told(answer)[0]]).toEqual([401, "NOT_FOUND"]);
  });

  it("takes the cost of the parameters, of counter and limit separately", async () => {
    const { ask, client } = await start();
    const limit = { limit: 10, duration: 600_000 };
    const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, remaining: 10, ratelimit: limit });
    expect((await ask("?cost=7&ratelimitCost=4", bearer(key))).status).toBe(200);
    expect((await client.keys.getKey({ keyId })).remaining).toBe(3);
    expect(told(await ask("?cost=4&ratelimitCost=1", bearer(key)))[0]).toBe("USAGE_EXCEEDED");
    expect(told(await ask("?cost=0&ratelimitCost=7", bearer(key)))[0]).toBe("RATE_LIMITED");
    expect((await ask("?cost=0&ratelimitCost=6", bearer(key))).status).toBe(200);
  });

  it("reads the end user's address from the header that is named, of a list the last", async () => {
    const { ask, client } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi, ipAllow: ["192.0.2.0/24"] });
    const statusWith = async (query: string, headers: HeaderValues = {}) =>
      (await ask(query, { ...bearer(key), ...headers })).status;
    expect(await statusWith("?ip=192.0.2.7")).toBe(200);
    expect(await statusWith("?ip=198.51.100.7", { "x-real-ip": "192.0.2.7" })).toBe(403);
    expect(await statusWith("?ipHeader=X-Real-IP", { "x-real-ip": "192.0.2.7" })).toBe(200);
    expect(await statusWith("?ipHeader=X-Real-IP", { "x-real-ip": "198.51.100.7" })).toBe(403);
    expect(await statusWith("?ipHeader=X-Real-IP")).toBe(403);
    expect(await statusWith("", { "x-real-ip": "192.0.2.7" })).toBe(403);
    const forwarded = "?ipHeader=X-Forwarded-For";
    expect(await statusWith(forwarded, { "x-forwarded-for": "192.0.2.7, 192.0.2.7, 198.51.100.7" })).toBe(403);
    expect(await statusWith(forwarded, { "x-forwarded-for": ["198.51.100.7, 198.51.100.8", "192.0.2.7"] })).toBe(200);
    expect(await statusWith(forwarded, { "x-forwarded-for": "unknown" })).toBe(400);
  });

  it.each([
    "?api=demo",
    "?apiId=demo&apiId=demo",
    "?apiId=",
    `?apiId=${"a".repeat(256)}`,
    "?apiId=a%00b",
    "?apiId=%FF",
    "?permissions=docs.read%20AND",
    "?cost=-1",
    "?cost=1.5",
    "?cost=",
    "?cost=2147483648",
    "?ratelimitCost=x",
    "?ip=here",
    "?ip=192.0.2.7&ipHeader=X-Real-IP",
    "?ipHeader=",
    "?ipHeader=X%20Real",
    "?key=abc",
    "?__proto__=1",
    "?",
    "?&apiId=demo",
  ])("answers 400 without a body to the parameters %s, and says why in a header", async (query) => {
    const { ask, client, calls } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    const answer = await ask(query, bearer(key));
    // A lone question mark is no parameter.
    if (query === "?") expect(answer.status).toBe(200);
    else {
      expect([answer.status, answer.body.length]).toEqual([400, 0]);
      expect(told(answer).slice(0, 3)).toEqual(["BAD_REQUEST", "", ""]);
      expect(told(answer)[3]).not.toBe("");
      expect(await calls("BAD_REQUEST")).toBe(1);
    }
  });

  it("needs a root key in a header of its own where verifications need one", async () => {
    const { ask, client, calls } = await start(byHand, { verifyAuth: "required" });
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    const withRoot = (rootKey: string) => ask("", { ...bearer(key), "x-latchkey-root-key": rootKey });
    expect((await withRoot(testRootKey)).status).toBe(200);
    // It is for another API, for which this key does not exist.
    expect(told(await withRoot(limitedRootKey))[0]).toBe("NOT_FOUND");
    for (const answer of [
      await ask("", bearer(key)),
      await ask("", bearer(testRootKey)),
      await withRoot("wrong"),
      await withRoot("not a token"),
      await withRoot(powerlessRootKey),
    ]) {
      expect([answer.status, answer.body.length]).toEqual([503, 0]);
      expect(answer.headers.get("www-authenticate")).toBeNull();
      expect(told(answer).slice(0, 3)).toEqual(["UNAVAILABLE", "", ""]);
    }
    expect(await calls("FORBIDDEN")).toBe(1);
    expect(await calls("UNAUTHORIZED")).toBe(4);
  });

  it("is unavailable, and does not limit the end user, after too many wrong root keys", async () => {
    const { ask, calls, logLines } = await start(byHand, { verifyAuth: "required" });
    for (let i = 0; i <= failuresMax; i++) {
      const answer = await ask("", { ...bearer("any"), "x-latchkey-root-key": "wrong" });
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, null]);
    }
    expect(await calls("TOO_MANY_REQUESTS")).toBe(1);
    expect(logLines.join()).toContain("a root key was refused");
  });

  it("is unavailable while the store is, and says so in the log", async () => {
    const findByDigest = () => Promise.reject(new Unavailable("the store is away"));
    const { ask, client, calls, logLines } = await start(byHand, {
      keys: { findByDigest },
    });
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    const answer = await ask("", bearer(key));
    expect([answer.status, answer.body.length, told(answer)[0]]).toEqual([503, 0, "UNAVAILABLE"]);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await calls("SERVICE_UNAVAILABLE")).toBe(1);
    expect(logLines.join()).toContain("a call could not be decided");
  });

  it("counts as a verification, and never logs the key", async () => {
    const { ask, client, calls, metrics, logLines } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    await ask("", bearer(key));
    await ask("", bearer(key));
    expect(await calls("OK")).toBe(2);
    expect(sumMetric(await metrics.render(), 'latchkey_verifications_total{code="VALID"}')).toBe(2);
    expect(logLines.join()).toContain('"protocol":"authz"');
    expect(logLines.join()).not.toContain(key);
  });

  it("answers a request whose body never comes, and takes nothing that follows for the body", async () => {
    const { port, client } = await start();
    const { key, keyId } = await client.keys.createKey({ apiId: guardedApi, remaining: 5 });
    const head = `POST /v1/authz HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: 500\r\n\r\n`;
    const answers = await exchange(port, head);
    // One answer, and the connection has ended with it.
    expect(answers).toMatch(/^HTTP\/1\.1 200 (?!.*HTTP\/1\.1)/s);
    expect(answers.toLowerCase()).toContain("\r\nconnection: close\r\n");
    expect((await client.keys.getKey({ keyId })).remaining).toBe(4);
  });

  it("answers HTTP/1.0, which nginx speaks unless it is told otherwise", async () => {
    const { port, client } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi });
    const answer = await exchange(port, `GET /v1/authz HTTP/1.0\r\nX-API-Key: ${key}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\nx-latchkey-code: VALID\r\n.*\r\n\r\n$/s);
  });

  it("cuts a reason that would not fit into a proxy's buffer", async () => {
    const { ask, client } = await start();
    const { key } = await client.keys.createKey({ apiId: guardedApi, ownerId: "€".repeat(255) });
    const query = Array.from({ length: 50 }, (_, i) => `permission.${i}`).join(" OR ");
    const answer = await ask(`?permissions=${encodeURIComponent(query)}`, bearer(key));
    expect(told(answer)[0]).toBe("INSUFFICIENT_PERMISSIONS");
    expect(told(answer)[3]?.length).toBeLessThan(900);
  });
});
