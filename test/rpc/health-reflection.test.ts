import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as AlphaReflection } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/health/v1/health_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { services as ourServices } from "../../gen/latchkey/v1/services.ts";
import { Secret } from "../../src/domain/secret.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { connectWire, type HttpAnswer } from "./exchange.ts";
import { frame } from "./protocols.ts";
import { shareServer } from "./shared-server.ts";

const keysService = "latchkey.v1.KeysService";
const ours = ourServices.map(({ typeName }) => typeName);
const services = [
  ...ours,
  "grpc.health.v1.Health",
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
];

const server = shareServer();

describe("grpc.health.v1", () => {
  it("says that the server and each service serve, and knows no others", async () => {
    const health = createClient(Health, createGrpcTransport({ baseUrl: server().baseUrl }));
    for (const service of ["", ...ours]) {
      expect(await health.check({ service })).toMatchObject({ status: Status.SERVING });
    }
    const { statuses } = await health.list({});
    expect(Object.keys(statuses).sort()).toEqual(["", "grpc.health.v1.Health", ...ours]);
    await expect(health.check({ service: "cnry" })).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: "there is no such service",
    });
  });

  it("tells watching clients that the server is going to stop", async () => {
    const { baseUrl, stop } = await startTestServer();
    const health = createClient(Health, createGrpcTransport({ baseUrl }));
    const watches = ["", keysService].map((service) => health.watch({ service })[Symbol.asyncIterator]());
    const next = () => Promise.all(watches.map(async (watch) => (await watch.next()).value?.status));
    expect(await next()).toEqual([Status.SERVING, Status.SERVING]);
    const stopping = stop();
    expect(await next()).toEqual([Status.NOT_SERVING, Status.NOT_SERVING]);
    await stopping;
    // Afterwards the stream ends, one way or the other.
    for (const watch of watches) await watch.next().catch((error) => expect(error).toBeInstanceOf(ConnectError));
  });

  it("says that a service is unknown, and goes on watching", async () => {
    const health = createClient(Health, createGrpcTransport({ baseUrl: server().baseUrl }));
    const abort = new AbortController();
    const watch = health.watch({ service: "cnry" }, { signal: abort.signal })[Symbol.asyncIterator]();
    expect((await watch.next()).value).toMatchObject({ status: Status.SERVICE_UNKNOWN });
    let isOver = false;
    void watch.next().then(
      () => (isOver = true),
      () => (isOver = true),
    );
    // On the same connection: the end of the watch would come before the answers to these.
    for (let i = 0; i < 3; i++) await health.check({ service: "" });
    expect(isOver).toBe(false);
    // Ends the call.
    abort.abort();
  });
});

describe.each([
  ["grpc.reflection.v1", ServerReflection],
  // Its messages are the same but for their names.
  ["grpc.reflection.v1alpha", AlphaReflection as unknown as typeof ServerReflection],
])("%s", (_, service) => {
  type Question = ServerReflectionRequest["messageRequest"];

  async function ask(...questions: Question[]) {
    const reflection = createClient(service, createGrpcTransport({ baseUrl: server().baseUrl }));
    const requests = (async function* () {
      for (const messageRequest of questions) yield { messageRequest };
    })();
    const answers = [];
    for await (const { messageResponse } of reflection.serverReflectionInfo(requests)) answers.push(messageResponse);
    return answers;
  }

  const filesOf = (answer: Awaited<ReturnType<typeof ask>>[number] | undefined) =>
    answer?.case === "fileDescriptorResponse"
      ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
      : expect.fail(`answers ${answer?.case}`);

  it("lists the services", async () => {
    const [answer] = await ask({ case: "listServices", value: "" });
    expect(answer).toMatchObject({ value: { service: services.map((name) => ({ name })) } });
  });

  it.each([
    { case: "fileContainingSymbol", value: keysService },
    { case: "fileContainingSymbol", value: `${keysService}.VerifyKey` },
    { case: "fileContainingSymbol", value: "latchkey.v1.Refill" },
    { case: "fileByFilename", value: "latchkey/v1/keys.proto" },
  ] satisfies Question[])("returns the file of $case $value with all it depends on", async (question) => {
    const [answer] = await ask(question);
    const files = filesOf(answer);
    const [file = expect.fail("no file")] = files;
    expect(file.name).toBe("latchkey/v1/keys.proto");
    const registry = createFileRegistry(file, (name) => files.find((candidate) => candidate.name === name));
    const names = registry.getService(keysService)?.methods.map(({ name }) => name);
    expect(names).toEqual(KeysService.methods.map(({ name }) => name));
  });

  it.each(services)("knows the symbol %s that it lists", async (value) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value });
    expect(filesOf(answer).length).toBeGreaterThan(0);
  });

  it.each([
    ["latchkey.v1.ErrorDetail", "latchkey/v1/errors.proto"],
    ["google.rpc.BadRequest", "google/rpc/error_details.proto"],
    ["google.rpc.RetryInfo", "google/rpc/error_details.proto"],
  ])("knows %s, which errors carry and no method names", async (value, name) => {
    const [answer] = await ask({ case: "fileContainingSymbol", value });
    expect(filesOf(answer)[0]?.name).toBe(name);
  });

  it("answers an unknown question with an error in the stream, and goes on", async () => {
    const answers = await ask(
      { case: "fileContainingSymbol", value: "cnry.Nothing" },
      { case: "fileByFilename", value: "../../cnry" },
      { case: "allExtensionNumbersOfType", value: "cnry" },
      { case: undefined },
      { case: "listServices", value: "cnry" },
    );
    const notFound = { errorCode: 5, errorMessage: "there is no such file or symbol" };
    const unimplemented = { errorCode: 12, errorMessage: "only services, files and symbols can be asked for" };
    const errors = [notFound, notFound, unimplemented, unimplemented];
    expect(answers).toMatchObject([
      ...errors.map((value) => ({ case: "errorResponse", value })),
      { case: "listServicesResponse" },
    ]);
  });
});

describe("a stream that is malformed", () => {
  const watch = "/grpc.health.v1.Health/Watch";
  const reflect = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const reflectAlpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  const unreadable = "a message of the stream could not be read";
  const unsupported = "the stream asks for something that is not supported";
  const tooLarge = "a message of the stream is too large";
  const bytes = Buffer.from("cnry");
  const json = "application/grpc+json";

  it.each([
    [watch, "application/grpc", frame(bytes), "3", unreadable],
    [watch, json, frame(Buffer.from('{"service": cnry')), "3", unreadable],
    [watch, json, frame(Buffer.from('{"service": ["cnry"]}')), "3", unreadable],
    [watch, "application/grpc", bytes, "3", unreadable],
    [watch, "application/grpc", Buffer.alloc(0), "12", unsupported],
    [watch, "application/grpc", frame(bytes, { flag: 1 }), "3", unreadable],
    [watch, "application/grpc", frame(bytes, { length: 0xffffffff }), "8", tooLarge],
    [reflect, "application/grpc", frame(bytes), "3", unreadable],
    [reflect, json, frame(Buffer.from("cnry")), "3", unreadable],
    [reflect, "application/grpc", frame(bytes, { flag: 1 }), "3", unreadable],
    [reflect, "application/grpc", frame(bytes, { length: 0xffffffff }), "8", tooLarge],
    [reflectAlpha, "application/grpc", frame(bytes), "3", unreadable],
    [reflectAlpha, json, frame(Buffer.from("cnry")), "3", unreadable],
  ])("at %s in %s is refused with a fixed text (%#)", async (path, contentType, body, status, message) => {
    const { port, logLines } = server();
    const headers = { "content-type": contentType, "grpc-timeout": "cnry", "grpc-encoding": "cnry" };
    const answer = await connectWire(port).over2({ method: "POST", path, headers, body });
    expect(decodeURIComponent(answer.trailers.get("grpc-message") ?? "")).toBe(message);
    expect(answer.trailers.get("grpc-status")).toBe(status);
    expect(logLines.filter((line) => line.includes("cnry") || line.includes('"error"'))).toEqual([]);
  });

  it("at Watch over gRPC is refused with a fixed text and details, where its headers are usual", async () => {
    const { port, logLines } = server();
    const wire = connectWire(port);
    const headers = { "content-type": "application/grpc", te: "trailers" };
    for (const [body, status, message] of [
      [bytes, "3", unreadable],
      [Buffer.alloc(0), "3", unreadable],
      [Buffer.concat([frame(Buffer.alloc(0)), frame(Buffer.alloc(0))]), "3", unreadable],
      [frame(bytes), "3", unreadable],
      [frame(bytes, { flag: 1 }), "3", unreadable],
      [frame(Buffer.alloc(70_000)), "8", "the body is larger than 65536 bytes"],
    ] as const) {
      const { trailers } = await wire.over2({ method: "POST", path: watch, headers, body });
      expect(["grpc-status", "grpc-message"].map((name) => trailers.get(name))).toEqual([status, message]);
      expect(trailers.get("grpc-status-details-bin")).toBeDefined();
    }
    expect(logLines.filter((line) => line.includes("cnry") || line.includes('"error"'))).toEqual([]);
  });

  it.each([
    ["a header that Connect would repeat", { "grpc-timeout": "cnry", "grpc-encoding": "cnry" }],
    ["a deadline further off than timers reach", { "grpc-timeout": "99999999H" }],
  ])("with %s is served nevertheless", async (_, odd) => {
    const session = http2.connect(server().baseUrl);
    onTestFinished(() => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": watch,
      "content-type": "application/grpc",
      ...odd,
    });
    stream.end(frame(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema))));
    const [answer] = await once(stream, "data");
    expect(answer).toEqual(Buffer.from(frame(Buffer.from([8, Status.SERVING]))));
  });

  it.each([watch, reflect, reflectAlpha])(
    "over HTTP/1.1, by GET or in another content type is refused as JSON at %s",
    async (path) => {
      const wire = connectWire(server().port);
      const headers = { "content-type": "application/grpc" };
      const code = ({ body }: HttpAnswer) => JSON.parse(body.toString()).error.code;
      const body = frame(Buffer.alloc(0));
      expect(code(await wire.over1({ method: "POST", path, headers, body }))).toBe("BAD_REQUEST");
      expect(code(await wire.over2({ method: "GET", path, headers, body }))).toBe("METHOD_NOT_ALLOWED");
      const plain = { "content-type": "text/cnry" };
      expect(code(await wire.over2({ method: "POST", path, headers: plain, body }))).toBe("UNSUPPORTED_MEDIA_TYPE");
    },
  );
});

describe("the probes", () => {
  it("say alive and ready, and not ready once the server is going to stop", async () => {
    const { onePort, setReady } = composePublicApi();
    const baseUrl = `http://127.0.0.1:${await onePort.listen(0, "127.0.0.1")}`;
    onTestFinished(() => onePort.close(0));
    const probe = async (path: string) => (await fetch(baseUrl + path)).status;
    setReady(true);
    expect([await probe("/livez"), await probe("/readyz")]).toEqual([200, 200]);
    setReady(false);
    expect([await probe("/livez"), await probe("/readyz")]).toEqual([200, 503]);
  });

  it("serve the OpenAPI document as it was generated", async () => {
    const answer = await fetch(`${server().baseUrl}/openapi.json`);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(await answer.text()).toBe(readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8"));
  });
});

describe("the internal listener", () => {
  it("counts verifications by outcome, and holds nothing of a key", async () => {
    const { baseUrl, internalPort, rootKey } = server();
    const client = rawClient(server()).keys;
    const { key, keyId } = await client.createKey({ apiId: "cnry-api", remaining: 1, ownerId: "cnry-owner" });
    for (const tried of [key, key, "cnry-unknown"]) await client.verifyKey({ key: tried });
    const metrics = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text();
    for (const code of ["VALID", "USAGE_EXCEEDED", "NOT_FOUND"]) {
      expect(metrics).toContain(`latchkey_verifications_total{code="${code}"} 1`);
    }
    for (const hidden of [key, key.slice(4, 20), keyId, "cnry", rootKey]) expect(metrics).not.toContain(hidden);
    expect((await fetch(`${baseUrl}/metrics`)).status).toBe(404);
  });

  it("asks for its secret where it has one", async () => {
    const secret = "secret-of-the-internal-listener-0123";
    const { internalPort, rootKey } = await startTestServer({ settings: { internalSecrets: [new Secret(secret)] } });
    const statusWith = async (authorization?: string) => {
      const headers = authorization === undefined ? {} : { authorization };
      return (await fetch(`http://127.0.0.1:${internalPort}/metrics`, { headers })).status;
    };
    for (const wrong of [undefined, "", secret, `Bearer ${secret}x`, `Bearer ${rootKey}`, "Bearer "]) {
      expect(await statusWith(wrong), String(wrong)).toBe(401);
    }
    expect(await statusWith(`Bearer ${secret}`)).toBe(200);
  });
});
