import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { bytes, entryOf, META, metaEntry, metaOf, text, valueBytes } from "../rpc/decoding/build-wire.ts";
import { connectWire, type HeaderValues, type HttpAnswer, type Wire } from "../rpc/exchange.ts";
import { type CallName, encode, frame, type Protocol, protocols } from "../rpc/protocols.ts";
import { sized } from "../support/deep.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { startCollector } from "../support/otlp-collector.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";

/** All canaries, by their description. None may appear anywhere. */
const secrets = new Map<string, string>();
/** Everything that is stored as data: finding it proves that the search works. */
const stored: string[] = [];

/** Nothing that could be in the text by chance. */
function canary(what: string): string {
  return remember(`cnry-${randomBytes(12).toString("hex")}`, what);
}

/** Looks like a key. Its characters are valid in a field name, so that it can be sent in place of one. */
function nameCanary(what: string): string {
  return remember(`acme_${randomBytes(12).toString("hex")}`, what);
}

function remember(value: string, what: string): string {
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

describe("of 350 secrets sent along every path", () => {
  // With workers, root keys and messages cross from one process to the other.
  it.each(sized([1], [2]))(
    "none turns up in the log, the metrics, a trace, an error or the files on disk, with workers: %i",
    async (workers) => {
      const dataDir = tempFolder();
      const rootKey = canary("the root key").padEnd(40, "x");
      const collector = await startCollector();
      const otlpHeaders = new Secret(`x-token=${canary("a header of the collector")}`);
      const tracing = { otlpEndpoint: collector.endpoint, otlpHeaders };
      const rootKeys = [new Secret(rootKey)];
      const server = await startTestServer({ settings: { dataDir, workers, rootKeys, ...tracing } });
      const wire = connectWire(server.port);
      const refusals: HttpAnswer[] = [];
      for (const protocol of protocols) {
        await createAndVerify(server, rootKey);
        refusals.push(...(await sendSecrets(wire, protocol, rootKey)));
        const asNames = await sendSecretsAsNames(wire, protocol, rootKey);
        for (const answer of asNames) expect(protocol.readError(answer)?.code).toBe("BAD_REQUEST");
        refusals.push(...asNames);
      }
      expect(secrets.size).toBeGreaterThanOrEqual(350);

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
      expect(collector.spans().length).toBeGreaterThan(200);
      expect(found(collector.requests.map(({ body }) => body).join("\n"))).toEqual([]);
    },
  );

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

/** The good path. Created fields are data and may appear; the secret and the idempotency key may not. */
async function createAndVerify({ baseUrl }: TestServer, rootKey: string): Promise<void> {
  const client = rawClient({ baseUrl, rootKey }).keys;
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

/** Every place for a secret in a request that is refused, or that finds no key. */
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
    await send("getOwner", message("getOwner", { ownerId: canary("the id of no owner") })),
    await send(
      "createOwner",
      message("createOwner", { ownerId: "o", apiIds: [canary("a long API").padEnd(300, "x")] }),
    ),
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
    await send("verifyKey", verify(), { [nameCanary("the name of a header")]: "1" }),
    await send("verifyKey", verify(), {}, `?key=${canary("a query")}`),
    await send("verifyKey", verify(), {}, `?${nameCanary("the name in a query")}=1`),
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

/** Every way for a secret to stand where the name of a field should. Each is refused. */
async function sendSecretsAsNames(wire: Wire, protocol: Protocol, rootKey: string): Promise<HttpAnswer[]> {
  const answers: HttpAnswer[] = [];
  for (const [call, body] of protocol.codec === "json" ? namesInJson() : namesInProtobuf()) {
    answers.push(
      await (protocol.http === 1 ? wire.over1 : wire.over2)({
        method: "POST",
        path: protocol.pathOf(call),
        headers: { "content-type": protocol.contentType, authorization: `Bearer ${rootKey}` },
        body: protocol.framed ? frame(body) : body,
      }),
    );
  }
  return answers;
}

function namesInJson(): [CallName, Uint8Array][] {
  const name = nameCanary;
  const [twice, twiceInMeta] = [name("a name sent twice"), name("a name sent twice in meta")];
  const bodies: [CallName, string][] = [
    ["createKey", `{"apiId":"a","${name("an unknown name")}":1}`],
    ["verifyKey", `{"key":"a","${name("an unknown name")}":1}`],
    ["verifyKey", `{"${name("a key in the place of its name")}":"key"}`],
    ["deleteKey", `{"keyId":"a","${name("an unknown name")}":1}`],
    ["createKey", `{"apiId":"a","refill":{"${name("an unknown name in refill")}":1}}`],
    ["createKey", `{"apiId":"a","ratelimit":{"${name("an unknown name in ratelimit")}":1}}`],
    ["createKey", `{"apiId":"a","${name("an unknown name of null")}":null}`],
    ["createKey", `{"apiId":"a","${twice}":1,"${twice}":1}`],
    ["createKey", `{"apiId":"a","${name("a name around a name sent twice")}":{"a":1,"a":1}}`],
    ["createKey", `{"apiId":"a","${name("a name around NUL")}":["\\u0000"]}`],
    ["createKey", `{"apiId":"a","${name("a name with NUL")}\\u0000":1}`],
    ["createKey", `{"apiId":"a","meta":{"${twiceInMeta}":1,"${twiceInMeta}":1}}`],
    ["createKey", `{"apiId":"a","meta":{"${name("a name in meta around a half pair")}":"\\ud800"}}`],
    ["createKey", `{"apiId":"a","meta":{"${name("a name in meta around a large number")}":[1e999]}}`],
    ["createKey", `{"apiId":"a","meta":{"${name("a name in meta around __proto__")}":{"__proto__":1}}}`],
    ["createKey", `{"apiId":"a","meta":{"${name("a name in meta too deep")}":${"[".repeat(20)}${"]".repeat(20)}}}`],
    ["createKey", `{"apiId":"a","meta":{"${name("a name before the end of the text")}":`],
  ];
  return bodies.map(([call, text]) => [call, Buffer.from(text)]);
}

/** Protobuf names fields by number; names are in meta only. */
function namesInProtobuf(): [CallName, Uint8Array][] {
  const name = nameCanary;
  const twice = entryOf(name("a name sent twice in meta"), 1);
  const metas = [
    bytes(META, twice, twice),
    metaEntry(`${name("a name with NUL")}\0`, valueBytes(1)),
    metaEntry(Buffer.concat([Buffer.from(name("a name that is not UTF-8")), Buffer.of(0xff)]), valueBytes(1)),
    metaEntry(name("a name of no value"), Buffer.alloc(0)),
    metaEntry(name("a name in meta around NaN"), valueBytes([Number.NaN])),
    metaEntry(name("a name in meta around __proto__"), valueBytes({ ["__proto__"]: 1 })),
    metaEntry(name("a name in meta around an unknown field"), bytes(99, Buffer.from("x"))),
    metaOf({ [name("a name in meta too deep")]: JSON.parse(`${"[".repeat(20)}${"]".repeat(20)}`) }),
  ];
  return metas.map((meta) => ["createKey", Buffer.concat([text(1, "a"), meta])]);
}

/** The descriptions of the canaries that the text contains. */
function found(text: string): string[] {
  return [...secrets].filter(([secret]) => text.includes(secret)).map(([, what]) => what);
}

function filesIn(folder: string, except = ""): string {
  const names = readdirSync(folder).filter((name) => name !== except);
  expect(names).toContain("latchkey.db");
  return names.map((name) => readFileSync(join(folder, name), "latin1")).join("\n");
}

/** The whole answer, and its base64 parts decoded. */
function textOf({ headers, body, trailers }: HttpAnswer): string {
  const text = `${body.toString("latin1")}\n${[...headers, ...trailers].join("\n")}`;
  const encoded = text.match(/[A-Za-z0-9+/_-]{24,}/g) ?? [];
  return [
    text,
    decodeURIComponent(text.replace(/%(?![0-9A-F]{2})/g, "")),
    ...encoded.map((part) => Buffer.from(part, "base64").toString("latin1")),
  ].join("\n");
}
