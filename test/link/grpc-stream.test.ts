import { readFileSync } from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { GrpcStream } from "../../src/link/grpc-stream.ts";
import { makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";

const hello = Buffer.from("hello");

vi.mock("node:dns/promises", () => ({
  lookup: async () => [{ address: "127.0.0.2" }, { address: "127.0.0.1" }],
}));

/** Answers every stream with a message and its headers; the stream ends when the client ends it. */
async function serve(server: http2.Http2Server | http2.Http2SecureServer): Promise<number> {
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.write(Buffer.concat([Buffer.of(0, 0, 0, 0, hello.length), hello]));
    stream.on("end", () => stream.end()).resume();
  });
  onTestFinished(() => void server.close());
  return listen(server, "127.0.0.1");
}

function listen(server: net.Server | http2.Http2Server, host: string, port = 0): Promise<number> {
  // Clients reset their connections here.
  server.on("sessionError", () => {});
  server.on("connection", (socket: net.Socket) => socket.on("error", () => {}));
  return new Promise((resolve) => {
    (server as net.Server).listen(port, host, () =>
      resolve(((server as net.Server).address() as net.AddressInfo).port),
    );
  });
}

/** A way to this port that tells how connections ended: by a reset, or politely. */
async function watchEnds(port: number): Promise<{ port: number; ends: string[] }> {
  const ends: string[] = [];
  const server = net.createServer((client) => {
    const upstream = net.connect(port, "127.0.0.1").on("error", () => {});
    client.on("error", ({ code }: NodeJS.ErrnoException) => ends.push(code ?? "error"));
    client.on("end", () => ends.push("end"));
    client.on("close", () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  onTestFinished(() => void server.close());
  return { port: await listen(server, "127.0.0.1"), ends };
}

function open(address: string, options: { ca?: string; firstAddress?: number } = {}) {
  const messages: string[] = [];
  const reasons: string[] = [];
  const stream = new GrpcStream({
    address,
    firstAddress: options.firstAddress ?? 0,
    path: "/service/method",
    headers: {},
    ca: options.ca,
    onMessage: (message) => messages.push(message.toString()),
    onDrain: () => {},
    onClose: (reason) => reasons.push(reason),
  });
  onTestFinished(() => stream.reset());
  return { stream, messages, reasons };
}

describe("a gRPC stream on a socket of its own", () => {
  it("that is given up is reset, and says nothing any more", async () => {
    const { port, ends } = await watchEnds(await serve(http2.createServer()));
    const { stream, messages, reasons } = open(`127.0.0.1:${port}`);
    await vi.waitFor(() => expect(messages).toEqual(["hello"]));
    stream.reset();
    await vi.waitFor(() => expect(ends).toEqual(["ECONNRESET"]));
    expect(reasons).toEqual([]);
  });

  it("that is ended closes politely when the other side has ended it", async () => {
    const { port, ends } = await watchEnds(await serve(http2.createServer()));
    const { stream, messages, reasons } = open(`http://127.0.0.1:${port}`);
    await vi.waitFor(() => expect(messages).toEqual(["hello"]));
    stream.end();
    await vi.waitFor(() => expect([reasons, ends]).toEqual([["OK"], ["end"]]));
  });

  it("uses TLS with a private CA, also for a reset, and refuses another certificate", async () => {
    const { certificate, key } = makeCertificate(tempFolder(), "coordinator");
    const [ca, keyText] = [readFileSync(certificate, "utf8"), readFileSync(key, "utf8")];
    const { port, ends } = await watchEnds(await serve(http2.createSecureServer({ cert: ca, key: keyText })));
    const { stream, messages } = open(`https://127.0.0.1:${port}`, { ca });
    await vi.waitFor(() => expect(messages).toEqual(["hello"]));
    stream.reset();
    await vi.waitFor(() => expect(ends).toEqual(["ECONNRESET"]));
    const stranger = open(`https://127.0.0.1:${port}`);
    await vi.waitFor(() => expect(stranger.reasons).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT"]));
  });

  it("goes to the next address of a name at once if the first refuses, and begins with another if told to", async () => {
    const port = await serve(http2.createServer());
    const { messages } = open(`several.example:${port}`);
    await vi.waitFor(() => expect(messages).toEqual(["hello"]));
    // One that accepts and says nothing.
    let accepted = 0;
    const silent = net.createServer(() => accepted++);
    await listen(silent, "127.0.0.2", port);
    onTestFinished(() => void silent.close());
    open(`several.example:${port}`, { firstAddress: 0 });
    await vi.waitFor(() => expect(accepted).toBe(1));
    const next = open(`several.example:${port}`, { firstAddress: 1 });
    await vi.waitFor(() => expect(next.messages).toEqual(["hello"]));
    expect(accepted).toBe(1);
  });

  it.each([
    ["a status", { ":status": 200, "grpc-status": "16" }, "UNAUTHENTICATED"],
    ["an answer that is not gRPC", { ":status": 401 }, "HTTP 401"],
  ])("closes with the reason of %s", async (_, headers, reason) => {
    const server = http2.createServer();
    server.on("stream", (stream) => stream.on("error", () => {}).respond(headers, { endStream: true }));
    onTestFinished(() => void server.close());
    const { reasons } = open(`127.0.0.1:${await listen(server, "127.0.0.1")}`);
    await vi.waitFor(() => expect(reasons).toEqual([reason]));
  });
});
