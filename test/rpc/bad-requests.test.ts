import { Code } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { beforeAll, describe, expect, it } from "vitest";
import { failuresMax } from "../../src/domain/failures-by-address.ts";
import { errorCodes } from "../../src/rpc/api-error.ts";
import { isDeep } from "../support/deep.ts";
import type { TestServer } from "../support/in-process-server.ts";
import { nextLoopbackAddress } from "../support/loopback-address.ts";
import { rawClient } from "../support/raw-client.ts";
import { type BadRequest, gatewayProtocols, marks, type Setup, textCanary } from "./bad-requests/bad-request.ts";
import { callers, usedIdempotencyKey } from "./bad-requests/callers.ts";
import { costRules } from "./bad-requests/cost-rules.ts";
import { http } from "./bad-requests/http.ts";
import { jsonTexts } from "./bad-requests/json-text.ts";
import { limitRules } from "./bad-requests/limit-rules.ts";
import { ownerRules } from "./bad-requests/owner-rules.ts";
import { permissionRules } from "./bad-requests/permission-rules.ts";
import { rootKeyRules } from "./bad-requests/root-key-rules.ts";
import { rules } from "./bad-requests/rules.ts";
import { types } from "./bad-requests/types.ts";
import { usageRules } from "./bad-requests/usage-rules.ts";
import { frames, malformedProtobuf, rpcHeaders } from "./bad-requests/wire.ts";
import { connectWire, type HttpAnswer, type HttpRequest } from "./exchange.ts";
import { type Protocol, type Refusal, readGatewayError } from "./protocols.ts";
import { shareServer } from "./shared-server.ts";

const classes: Record<string, BadRequest[]> = {
  "a broken rule": rules,
  "a broken rule of permissions, addresses and limits": permissionRules,
  "a broken rule of root keys": rootKeyRules,
  "a broken rule of owners": ownerRules,
  "a broken rule of costs": costRules,
  "a broken rule of free-standing limits": limitRules,
  "a broken rule of usage": usageRules,
  "a wrong type or name": types,
  "a body that is no JSON": jsonTexts,
  "malformed protobuf": malformedProtobuf,
  "a frame that lies": frames,
  "a bad header of an RPC protocol": rpcHeaders,
  "bad HTTP": http,
  "a caller without the right": callers,
};
const all = Object.values(classes).flat();

/** All protocols of a request at full size. Otherwise one or, of few requests, two, which differ from one request to the next. */
function protocolsFor(request: BadRequest, among: readonly BadRequest[]): readonly Protocol[] {
  const { on } = request;
  const index = among.indexOf(request);
  const chosen = [on[index % on.length], ...(among.length < 100 ? [on[(index + (on.length >> 1)) % on.length]] : [])];
  return isDeep ? on : on.filter((protocol) => chosen.includes(protocol));
}

// On one engine: a bad request is refused before any store is asked.
describe("bad requests", () => {
  const server = shareServer();
  let setup: Setup;
  beforeAll(async () => {
    setup = await prepare(server());
  });

  it("are many, all different, and nearly all carry a canary", () => {
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(400);
    expect(all.filter(carriesCanary).length / all.length).toBeGreaterThan(0.85);
  });

  it.each(Object.keys(classes))(
    "%s is refused with the right code, field and request id, and echoed nowhere",
    async (name) => {
      const { port } = server();
      let wire = connectWire(port, nextLoopbackAddress());
      let sent = 0;
      const problems: string[] = [];
      const requests = classes[name] ?? [];
      for (const request of requests) {
        for (const protocol of protocolsFor(request, requests)) {
          // After 20 wrong root keys an address would get another code.
          if (++sent % failuresMax === 0) wire = connectWire(port, nextLoopbackAddress());
          const send = protocol.http === 1 ? wire.over1 : wire.over2;
          const found = await send(toHttp(request, protocol, setup)).then(
            (answer) => problemsOf(request, protocol, answer),
            (error: Error) => [`is not answered: ${error.message}`],
          );
          problems.push(...found.map((problem) => `${request.name}, ${protocol.name}: ${problem}`));
        }
      }
      expect(problems).toEqual([]);
      await expectUnharmed(server());
    },
  );
});

async function prepare({ baseUrl, rootKey }: TestServer): Promise<Setup> {
  const { keys, owners } = rawClient({ baseUrl, rootKey });
  const { key } = await keys.createKey({ apiId: textCanary, name: "another" }, { idempotencyKey: usedIdempotencyKey });
  await owners.createOwner({ ownerId: textCanary });
  return { rootKey, issuedKey: key };
}

function toHttp(request: BadRequest, protocol: Protocol, setup: Setup): HttpRequest {
  const { method, call, path = protocol.pathOf(call) } = request;
  const headers = typeof request.headers === "function" ? request.headers(setup) : request.headers;
  return {
    method,
    path,
    headers: { "content-type": protocol.contentType, authorization: `Bearer ${setup.rootKey}`, ...headers },
    body: request.body(protocol),
  };
}

function problemsOf(request: BadRequest, protocol: Protocol, answer: HttpAnswer): string[] {
  const inGatewayForm = request.beforeProtocol || gatewayProtocols.includes(protocol);
  let refusal: Refusal | undefined;
  try {
    refusal = (inGatewayForm ? readGatewayError : protocol.readError)(answer);
  } catch (error) {
    return [`the answer ${answer.status} cannot be read: ${error}`];
  }
  if (refusal === undefined) return [`is accepted with ${answer.status}`];

  const { status } = errorCodes[request.code];
  const { rpc = errorCodes[request.code].rpc } = request;
  const problems: string[] = [];
  const check = (right: boolean, problem: string) => right || problems.push(problem);
  check(refusal.code === request.code, `code ${refusal.code}: ${refusal.message}`);
  check(!/regex|[\^$]/i.test(refusal.message), `a regular expression: ${refusal.message}`);
  const requestId = answer.headers.get("x-request-id");
  check(/^req_\w{22}$/.test(requestId ?? ""), `x-request-id ${requestId}`);
  const bytes = answer.body.length + [...answer.headers, ...answer.trailers].join().length;
  check(bytes <= 4_096, `an answer of ${bytes} bytes`);
  check(refusal.requestId === requestId, `requestId ${refusal.requestId} under x-request-id ${requestId}`);
  if (inGatewayForm) {
    check(answer.status === status, `status ${answer.status}`);
    check(answer.headers.get("content-type") === "application/json", "content-type is not application/json");
  } else {
    check(refusal.rpc === rpc, `code ${Code[refusal.rpc ?? 0]}`);
    const expected = protocol.framed ? 200 : codeToHttpStatus(rpc);
    check(answer.status === expected, `status ${answer.status} instead of ${expected}`);
  }
  // Where the headers go out before the status is known, this one is among the trailers.
  if (request.code === "UNAUTHORIZED" && !protocol.framed) {
    check(answer.headers.get("www-authenticate") === "Bearer", "no www-authenticate");
  }
  if (request.rpc === Code.Unimplemented) {
    const name = /^grpc/.test(protocol.name) ? "grpc-accept-encoding" : "accept-encoding";
    const told = answer.headers.get(name) ?? answer.trailers.get(name) ?? "";
    check(told.includes("identity"), `no ${name}`);
  }
  if (request.code === "METHOD_NOT_ALLOWED") check(answer.headers.get("allow") === "POST", "no allow");
  if (request.code === "BAD_REQUEST" && request.field !== undefined) {
    const start = request.field === "" ? "the request " : `${request.field}: `;
    check(
      refusal.message.split("; ").some((part) => part.startsWith(start)),
      `says: ${refusal.message}`,
    );
    check(refusal.paths?.includes(request.field) ?? true, `names ${refusal.paths}`);
  }
  check(refusal.message.includes(request.says ?? ""), `does not say ${request.says}: ${refusal.message}`);
  const { neverSays } = request;
  check(neverSays === undefined || !refusal.message.includes(neverSays), `repeats a value: ${refusal.message}`);
  const told = `${refusal.told}${[...answer.headers.values()]}`.replaceAll(refusal.requestId, "");
  check(!marks.some((mark) => told.includes(mark)), `repeats a canary: ${told}`);
  return problems;
}

/** Alive, serving good requests, and with nothing in the log that was sent or that went wrong inside. */
async function expectUnharmed({ baseUrl, rootKey, logLines }: TestServer): Promise<void> {
  const client = rawClient({ baseUrl, rootKey }).keys;
  const { key } = await client.createKey({ apiId: "good", remaining: 1 });
  expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 0 });
  const lines = logLines.map((line) => line.replace(/"(requestId|keyId|time|seconds)":("[^"]*"|[\d.e-]+)/g, ""));
  const warnings = lines.filter((line) => /"level":"(error|warn)"/.test(line));
  const expected = /"msg":"(a root key was refused|the store was empty: a new one was created)"/;
  expect(warnings.filter((line) => !expected.test(line))).toEqual([]);
  expect(lines.filter((line) => marks.some((mark) => line.includes(mark)))).toEqual([]);
}

function carriesCanary(request: BadRequest): boolean {
  const headers = typeof request.headers === "function" ? {} : request.headers;
  return request.on.every((protocol) => {
    const sent = `${Buffer.from(request.body(protocol)).toString("latin1")}${request.path}${JSON.stringify(headers)}`;
    return marks.some((mark) => sent.includes(mark));
  });
}
