import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { createClient } from "../../src/sdk/index.ts";
import { connectWire, type HeaderValues, type HttpAnswer, type Wire } from "../rpc/exchange.ts";
import { type CallName, encode, frame, type Protocol, protocols } from "../rpc/protocols.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** Everything that must turn up nowhere, by what it is. */
const secrets = new Map<string, string>();
/** Everything that is stored as data: finding it proves that the search works. */
const stored: string[] = [];

/** No plain name, and nothing that could be in the text by chance. */
function canary(what: string): string {
  const value = `cnry-${randomBytes(12).toString("hex")}`;
  secrets.set(value, what);
  return value;
}

function data(): string {
  const value = `data-${randomBytes(12).toString("hex")}`;
  stored.push(value);
  return value;
}

beforeEach(() => {
  secrets.clear();
  stored.length = 0;
});

describe("of 200 secrets sent along every path", () => {
  it("none turns up in the log, the metrics, an error or the files on disk", async () => {
    const dataDir = tempFolder();
    const rootKey = canary("the root key").padEnd(40, "x");
    const server = await startTestServer({ settings: { dataDir, rootKeys: [new Secret(rootKey)] } });
    const wire = connectWire(server.port);
    const refusals: HttpAnswer[] = [];
    for (const protocol of protocols) {
      await createAndVerify(server, rootKey);
      refusals.push(...(await sendSecrets(wire, protocol, rootKey)));
    }
    expect(secrets.size).toBeGreaterThanOrEqual(200);

    expect(found(server.logLines.join("\n"))).toEqual([]);
    expect(server.logLines.length).toBeGreaterThan(200);
    const metrics = await (await fetch(`http://127.0.0.1:${server.internalPort}/metrics`)).text();
    expect(metrics).toContain("latchkey_verifications_total");
    expect(found(metrics)).toEqual([]);
    for (const answer of refusals) expect(found(textOf(answer))).toEqual([]);

    const running = filesIn(dataDir);
    expect(stored.filter((value) => !running.includes(value))).toEqual([]);
    expect(found(running)).toEqual([]);
    await server.stop();
    expect(found(filesIn(dataDir) + server.logLines.join("\n"))).toEqual([]);
  });

  it("a generated root key is in its file and nowhere else", async () => {
    const dataDir = tempFolder();
    const server = await startTestServer({ settings: { dataDir, rootKeys: [] } });
    const rootKey = readFileSync(join(dataDir, "root-key"), "utf8").trim();
    secrets.set(rootKey, "the generated root key");
    await createAndVerify(server, rootKey);
    await server.stop();
    expect(found(filesIn(dataDir, "root-key") + server.logLines.join("\n"))).toEqual([]);
    expect(found(filesIn(dataDir))).toEqual(["the generated root key"]);
  });
});

/** The good path: what is created is data, but for its secret and the idempotency key. */
async function createAndVerify({ baseUrl }: TestServer, rootKey: string): Promise<void> {
  const client = createClient({ baseUrl, rootKey });
  for (let round = 0; round < 3; round++) {
    const idempotencyKey = canary("an idempotency key");
    const request = { apiId: data(), ownerId: data(), name: data(), meta: { [data()]: data() }, remaining: 1 };
    const created = await client.createKey(request, { idempotencyKey });
    expect(await client.createKey(request, { idempotencyKey })).toEqual(created);
    // Its first characters may be seen, to tell keys apart; these are others.
    secrets.set(created.key.slice(6, 30), "an issued key");
    for (let use = 0; use < 2; use++) await client.verifyKey({ key: created.key, apiId: request.apiId });
    await client.verifyKey({ key: created.key, apiId: canary("the API of a verification") });
    if (round > 0) await client.deleteKey({ keyId: created.keyId });
  }
}

/** Every way for a secret to come with a request that is refused, or with one that finds no key. */
async function sendSecrets(wire: Wire, protocol: Protocol, rootKey: string): Promise<HttpAnswer[]> {
  const send = (call: CallName, body: Uint8Array, headers: HeaderValues = {}, suffix = "") =>
    (protocol.http === 1 ? wire.over1 : wire.over2)({
      method: "POST",
      path: protocol.pathOf(call) + suffix,
      headers: { "content-type": protocol.contentType, authorization: `Bearer ${rootKey}`, ...headers },
      body,
    });
  const message = (call: CallName, json: object) => encode(protocol, call, json as never);
  const raw = (text: string) => (protocol.framed ? frame(Buffer.from(text)) : Buffer.from(text));
  const verify = () => message("verifyKey", { key: canary("a key that is not there") });
  const create = (what: string, fields: (value: string) => object) =>
    send("createKey", message("createKey", { apiId: "a", ...fields(canary(what)) }));
  return [
    await send("verifyKey", verify()),
    await send("verifyKey", message("verifyKey", { key: "x", apiId: canary("an API").padEnd(300, "x") })),
    await send("deleteKey", message("deleteKey", { keyId: canary("the id of no key") })),
    await create("a bad prefix", (prefix) => ({ prefix })),
    await create("a long name", (value) => ({ name: value.repeat(20) })),
    await create("a long owner", (value) => ({ ownerId: value.repeat(20) })),
    await create("a bad interval", (interval) => ({ remaining: 1, refill: { interval, amount: 1 } })),
    await create("meta too large", (value) => ({ meta: { [value]: value.repeat(1000) } })),
    await send("createKey", raw(`{"apiId":"a","${canary("an unknown field")}":"${canary("its value")}"}`)),
    await send("createKey", raw(`{"apiId":["${canary("a value of the wrong type")}"]}`)),
    await send("createKey", raw(`{"meta":{"${canary("a name in meta")}":"\\ud800"}}`)),
    await send("createKey", raw(`{"apiId":"${canary("JSON that breaks off")}`)),
    await send("verifyKey", raw(canary("a body that is no message"))),
    await send("verifyKey", verify(), { "content-type": canary("a content type") }),
    await send("verifyKey", verify(), {
      "content-encoding": canary("an encoding"),
      "grpc-encoding": canary("an encoding"),
    }),
    await send("verifyKey", verify(), {
      "grpc-timeout": canary("a timeout"),
      "connect-timeout-ms": canary("a timeout"),
    }),
    await send("verifyKey", verify(), {
      cookie: canary("a cookie"),
      "x-api-key": canary("a header"),
      "user-agent": canary("an agent"),
    }),
    await send("verifyKey", verify(), { authorization: `Bearer ${canary("a bearer nobody asked for")}` }),
    await send("verifyKey", verify(), {}, `?key=${canary("a query")}`),
    await send("verifyKey", verify(), {}, `/${canary("a path")}`),
    await send("createKey", message("createKey", { apiId: "a" }), {
      authorization: `Bearer ${canary("a wrong root key")}`,
    }),
    await send("createKey", message("createKey", { apiId: "a" }), { authorization: `Basic ${canary("a password")}` }),
    await send("createKey", message("createKey", { apiId: "a" }), {
      "idempotency-key": `${canary("a bad idempotency key")} x`,
    }),
  ];
}

/** What the secrets are that the text holds. */
function found(text: string): string[] {
  return [...secrets].filter(([secret]) => text.includes(secret)).map(([, what]) => what);
}

function filesIn(folder: string, except = ""): string {
  const names = readdirSync(folder).filter((name) => name !== except);
  expect(names).toContain("latchkey.db");
  return names.map((name) => readFileSync(join(folder, name), "latin1")).join("\n");
}

/** All of an answer, with what is in base64 in it decoded too. */
function textOf({ headers, body, trailers }: HttpAnswer): string {
  const text = `${body.toString("latin1")}\n${[...headers, ...trailers].join("\n")}`;
  const encoded = text.match(/[A-Za-z0-9+/_-]{24,}/g) ?? [];
  return [
    text,
    decodeURIComponent(text.replace(/%(?![0-9A-F]{2})/g, "")),
    ...encoded.map((part) => Buffer.from(part, "base64").toString("latin1")),
  ].join("\n");
}
