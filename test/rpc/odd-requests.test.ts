import { describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { connectWire, type HeaderValues, type HttpAnswer, type Wire } from "./exchange.ts";
import { encode, type Protocol, protocols } from "./protocols.ts";

/* Requests that look wrong and are not, and answers that must not differ. */

function send(wire: Wire, protocol: Protocol, headers: HeaderValues, body: Uint8Array, path: string, method = "POST") {
  return (protocol.http === 1 ? wire.over1 : wire.over2)({
    method,
    path,
    headers: { "content-type": protocol.contentType, ...headers },
    body,
  });
}

function verify(wire: Wire, protocol: Protocol, key: string, headers: HeaderValues = {}): Promise<HttpAnswer> {
  return send(wire, protocol, headers, encode(protocol, "verifyKey", { key }), protocol.pathOf("verifyKey"));
}

describe.each(protocols)("over $name", (protocol) => {
  it("NOT_FOUND does not reveal why: all such answers are the same bytes except for the request id", async () => {
    const server = await startTestServer();
    const wire = connectWire(server.port);
    const [live, deleted] = [await createKey(server), await createKey(server)];
    await callJson(server, "deleteKey", { keyId: deleted.keyId });
    const keys = {
      deleted: deleted.key,
      "never issued here": "2Uf9rq7M1lqnTCmHfvTzDZzYMbhSk3C1i1nqK5",
      malformed: "hello",
      "a bad checksum": live.key.slice(0, -1) + (live.key.endsWith("A") ? "B" : "A"),
      "cut off": live.key.slice(0, -1),
      "with a space": `${live.key} `,
      "very long": "x".repeat(16_384),
      "beyond ASCII": "ключ",
    };
    const answers = new Set<string>();
    for (const key of Object.values(keys)) answers.add(withoutIds(await verify(wire, protocol, key)));
    expect([...answers]).toEqual([expect.stringContaining("NOT_FOUND")]);
    expect(withoutIds(await verify(wire, protocol, live.key))).toContain("VALID");
  });

  it("a method that does not exist is refused in the protocol's own words, and HEAD without a body", async () => {
    const { port } = await startTestServer();
    const wire = connectWire(port);
    const answer = await send(wire, protocol, {}, Buffer.alloc(0), "/latchkey.v1.KeysService/Nothing");
    expect(answer.headers.get("x-request-id")).toMatch(/^req_/);
    if (protocol.contentType.startsWith("application/grpc") && !protocol.contentType.includes("web")) {
      expect(answer).toMatchObject({ status: 200, body: Buffer.alloc(0) });
      expect(answer.trailers.get("grpc-status")).toBe("12");
    } else {
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body.toString()).error.code).toBe("NOT_FOUND");
    }

    const head = await send(wire, protocol, {}, Buffer.alloc(0), protocol.pathOf("verifyKey"), "HEAD");
    expect(head).toMatchObject({ status: 405, body: Buffer.alloc(0) });
    expect(head.headers.get("content-type")).toBe("application/json");
    expect(head.headers.get("x-request-id")).toMatch(/^req_/);
  });

  const oddHeaders: HeaderValues[] = [
    { "content-encoding": "identity", "grpc-encoding": "identity" },
    { "content-type": `${protocol.contentType}; charset=utf-8` },
    { "content-type": protocol.contentType.toUpperCase() },
    { authorization: "Basic unasked-for" },
    { "idempotency-key": "not for this method" },
    { accept: "text/html", "accept-encoding": "gzip, br", te: "trailers" },
    { expect: "something-else" },
    // Further off than a 32-bit timer reaches.
    { "grpc-timeout": "99999999H", "connect-timeout-ms": "9999999999" },
    { "connect-protocol-version": "7", "grpc-accept-encoding": "gzip" },
    { "x-forwarded-for": "x".repeat(4000) },
  ];
  it("a good request is served with any other headers", async () => {
    const { port } = await startTestServer();
    const wire = connectWire(port);
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    for (const headers of oddHeaders) {
      const answer = await verify(wire, protocol, "nothing", headers);
      expect(withoutIds(answer), JSON.stringify(headers)).toContain("NOT_FOUND");
      expect(protocol.readError(answer)).toBeUndefined();
    }
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("the scheme of Authorization", () => {
  it.each(["Bearer", "bearer", "BEARER"])("is %s in any case", async (scheme) => {
    const server = await startTestServer();
    const authorization = `${scheme}  ${server.rootKey}`;
    const answer = await fetch(`${server.baseUrl}/v1/keys.createKey?x=1`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: '{"apiId":"a"}',
    });
    expect(answer.status).toBe(200);
  });
});

async function callJson({ baseUrl, rootKey }: TestServer, call: string, body: object) {
  const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
  const answer = await fetch(`${baseUrl}/v1/keys.${call}`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as { keyId: string; key: string };
}

const createKey = (server: TestServer) => callJson(server, "createKey", { apiId: "a" });

/** Everything that came back: status, headers, body and trailers. */
function withoutIds({ status, headers, body, trailers }: HttpAnswer): string {
  headers.delete("date");
  const id = headers.get("x-request-id") ?? "none";
  return JSON.stringify([status, [...headers], body.toString("latin1"), [...trailers]]).replaceAll(id, "ID");
}
