import { execFile } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { promisify } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { builtProgram } from "../support/artefact.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { type Certificate, makeCertificate } from "../support/make-certificate.ts";
import { readMetric } from "../support/read-metric.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const folder = tempFolder(afterAll);
const authority = makeCertificate(folder, "authority");
const caFile = authority.certificate;
const ca = readFileSync(caFile, "utf8");
const [first, second] = [makeCertificate(folder, "first", authority), makeCertificate(folder, "second", authority)];
const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
const sdk = join(import.meta.dirname, "../../src/sdk/index.ts");
const host = "127.0.0.1";
const headers = { "content-type": "application/json" };
let latchkey: LatchkeyProcess;
let port: number;
let key: string;

function put({ certificate, key }: Certificate): void {
  copyFileSync(certificate, files.certificate);
  copyFileSync(key, files.key);
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  return (await promisify(execFile)(program, args, { env: { PATH: process.env.PATH, ...env } })).stdout;
}

/** What the service answers to curl, and over which version of HTTP. */
async function curl(...options: string[]): Promise<string> {
  const body = ["-H", "Content-Type: application/json", "-d", JSON.stringify({ key })];
  const always = ["-sS", "--cacert", caFile, "-w", " over %{http_version}"];
  return run(shellProgram("curl"), [...always, ...body, ...options, `https://${host}:${port}/v1/keys.verifyKey`]);
}

const undos: (() => unknown)[] = [];
afterAll(() => Promise.all(undos.map((undo) => undo())));

beforeAll(async () => {
  put(first);
  latchkey = await startLatchkey(
    {
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_DATA_DIR: join(folder, "data"),
      LATCHKEY_WORKERS: "2",
      LATCHKEY_TLS_CERT: files.certificate,
      LATCHKEY_TLS_KEY: files.key,
      LATCHKEY_CORS_ORIGINS: "https://app.example.com",
    },
    // Without a terminal, so that SIGHUP means a reload.
    ["setsid", process.execPath, builtProgram(), "serve"],
    (undo) => void undos.push(undo),
  );
  port = Number(new URL(latchkey.baseUrl).port);
  const created = await post("/v1/keys.createKey", { apiId: "demo" }, { authorization: `Bearer ${testRootKey}` });
  ({ key } = JSON.parse(created.text) as { key: string });
});

/** One request on a connection of its own, unless there is an agent. */
async function post(path: string, body: object, more: Record<string, string> = {}, agent: https.Agent | false = false) {
  const req = https.request({ host, port, path, method: "POST", ca, agent, headers: { ...headers, ...more } });
  req.end(JSON.stringify(body));
  const [res] = (await once(req, "response")) as [import("node:http").IncomingMessage];
  return { status: res.statusCode, headers: res.headers, text: (await res.toArray()).join("") };
}

describe("the public port over TLS", () => {
  it("serves curl over HTTP/2 and HTTP/1.1, with TLS 1.3 and 1.2, and nothing older", async () => {
    expect(await curl("--http2")).toMatch(/"valid":true.* over 2$/);
    expect(await curl("--http1.1")).toMatch(/"valid":true.* over 1.1$/);
    expect(await curl("--tls-max", "1.2")).toMatch(/"valid":true/);
    expect(await curl("--no-alpn")).toMatch(/"valid":true.* over 1.1$/);
    const old = tls.connect({ host, port, ca, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" });
    const [error] = (await once(old, "error")) as [Error];
    expect(error.message).toMatch(/protocol version|alert/);
  });

  it("serves gRPC to grpc-js, and the SDK", async () => {
    const client = new grpc.Client(`${host}:${port}`, grpc.credentials.createSsl(Buffer.from(ca)));
    onTestFinished(() => client.close());
    const { input, output } = KeysService.method.verifyKey;
    const verified = new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        "/latchkey.v1.KeysService/VerifyKey",
        () => Buffer.from(toBinary(input, create(input, { key }))),
        (bytes) => fromBinary(output, bytes),
        {},
        (error, answer) => (error === null ? resolve(answer) : reject(error)),
      );
    });
    expect(await verified).toMatchObject({ valid: true });

    const program = `
      import { createClient } from ${JSON.stringify(sdk)};
      const client = createClient({ baseUrl: "https://${host}:${port}" });
      console.log(JSON.stringify(await client.keys.verifyKey({ key: ${JSON.stringify(key)} })));`;
    const answer = await run(process.execPath, ["--input-type=module-typescript", "-e", program], {
      NODE_EXTRA_CA_CERTS: caFile,
    });
    expect(JSON.parse(answer)).toMatchObject({ valid: true });
  });

  it("reads JSON over HTTP/1.1 by hand", async () => {
    const byHand = () => readMetric(internalPort(), 'latchkey_http1_requests_total{way="by_hand"}');
    const before = await byHand();
    expect(await curl("--http1.1")).toContain('"valid":true');
    expect(await byHand()).toBe(before + 1);
  });

  it("never answers in cleartext, and counts who tries", async () => {
    const failed = () => readMetric(internalPort(), 'latchkey_tls_handshakes_failed_total{port="public"}');
    const before = await failed();
    const socket = net.connect(port, host);
    socket.write(`GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`);
    let heard = "";
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    await once(socket, "close");
    expect(heard).not.toContain("HTTP/1.1");
    expect(await failed()).toBe(before + 1);
  });

  it("prints https in its first lines", () => {
    expect(latchkey.stdout()).toContain(`Connect on https://127.0.0.1:${port}\n`);
  });
});

describe("pages of an origin that is named", () => {
  const origin = "https://app.example.com";
  const ask = (path: string, from: string, method: string, body?: string) =>
    run(shellProgram("curl"), [
      ...["-sS", "-i", "--cacert", caFile, "-X", method, "-H", `Origin: ${from}`],
      ...(body === undefined
        ? ["-H", "Access-Control-Request-Method: POST"]
        : ["-H", "Content-Type: application/json", "-d", body]),
      `https://${host}:${port}${path}`,
    ]);

  it.each(["/v1/keys.verifyKey", "/latchkey.v1.KeysService/VerifyKey"])("may verify at %s", async (path) => {
    const preflight = await ask(path, origin, "OPTIONS");
    expect(preflight).toMatch(/^HTTP\/2 204/);
    expect(preflight).toContain(`access-control-allow-origin: ${origin}`);
    expect(preflight).toMatch(/access-control-allow-headers: .*Content-Type/);
    expect(preflight).not.toMatch(/Authorization/i);
    const answer = await ask(path, origin, "POST", JSON.stringify({ key }));
    expect(answer).toContain(`access-control-allow-origin: ${origin}`);
    expect(answer).toContain('"valid":true');
    expect(await ask(path, origin, "POST", "{"), "also an error").toContain(`access-control-allow-origin: ${origin}`);
  });

  it("may read the answer over HTTP/1.1 too, which is otherwise read by hand", async () => {
    const answer = await post("/v1/keys.verifyKey", { key }, { origin });
    expect(answer.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "Origin" });
  });

  it("are the only ones, and may not call what needs a root key", async () => {
    expect(await ask("/v1/keys.verifyKey", "https://evil.example", "POST", JSON.stringify({ key }))).not.toContain(
      "access-control-allow",
    );
    for (const path of ["/v1/keys.createKey", "/latchkey.v1.KeysService/CreateKey", "/v1/authz"]) {
      expect(await ask(path, origin, "OPTIONS")).not.toContain("access-control-allow");
    }
  });
});

describe("a renewed certificate", () => {
  it("is used by all workers without a failed request, once both files are there", async () => {
    const load = startLoad();
    await vi.waitFor(() => expect(load.answers).toBeGreaterThan(200));
    expect(await shown()).toEqual(["first"]);

    copyFileSync(second.certificate, files.certificate);
    latchkey.kill("SIGHUP");
    await vi.waitFor(() => expect(latchkey.stderr()).toContain("the new settings cannot be used"));
    expect(await shown()).toEqual(["first"]);

    copyFileSync(second.key, files.key);
    latchkey.kill("SIGHUP");
    await vi.waitFor(() => expect(latchkey.stderr()).toContain("took over new settings"));
    expect(await shown()).toEqual(["second"]);
    const seen = load.answers;
    await vi.waitFor(() => expect(load.answers).toBeGreaterThan(seen + 200));

    put(first);
    latchkey.kill("SIGHUP");
    await vi.waitFor(async () => expect(await shown()).toEqual(["first"]));
    expect(await load.stop()).toEqual([]);
  });
});

function internalPort(): number {
  return Number(new URL(latchkey.internalUrl).port);
}

/** The certificates that new connections get to see, over enough of them to reach all workers. */
async function shown(): Promise<string[]> {
  const names = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const socket = tls.connect({ host, port, ca });
      await once(socket, "secureConnect");
      const { subject } = socket.getPeerCertificate();
      socket.destroy();
      return subject.CN as string;
    }),
  );
  return [...new Set(names)];
}

/** Verifications one after the other: on a connection that stays, over HTTP/1.1 and HTTP/2, and on a new one each. */
function startLoad() {
  let isStopping = false;
  let answers = 0;
  const failures: string[] = [];
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  const session = http2.connect(`https://${host}:${port}`, { ca });
  const overHttp2 = async () => {
    const stream = session.request({ ":method": "POST", ":path": "/v1/keys.verifyKey", ...headers });
    stream.end(JSON.stringify({ key }));
    return (await stream.toArray()).join("");
  };
  const overHttp1 = async (used: https.Agent | false) => (await post("/v1/keys.verifyKey", { key }, {}, used)).text;
  const repeat = async (ask: () => Promise<string>) => {
    while (!isStopping) {
      const text = await ask().catch(String);
      if (text.includes('"valid":true')) answers++;
      else failures.push(text);
    }
  };
  const running = [overHttp2, () => overHttp1(agent), () => overHttp1(false), () => overHttp1(false)].map(repeat);
  return {
    get answers() {
      return answers;
    },
    async stop(): Promise<string[]> {
      isStopping = true;
      await Promise.all(running);
      agent.destroy();
      session.destroy();
      return failures;
    },
  };
}
