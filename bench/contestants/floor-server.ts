// The least that a server of each kind does: reads the request, parses what is JSON, and answers bytes that it was given;
// `given` looks at no request, and has headers in its file beside the body.
// `node floor-server.ts <kind> <file with the answer>`; prints its port.
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { Server, ServerCredentials } from "@grpc/grpc-js";

const [kind = "", answerFile = ""] = process.argv.slice(2);
const answer: Buffer = readFileSync(answerFile);
const requestId = "req_0000000000000000000000";
// As Latchkey's, which every answer names.
const keepAliveTimeout = 75_000;

const kinds: Record<string, () => void> = {
  http: () => listen(createHttpServer()),
  "http-threads": serveHttpInThreads,
  given: serveGiven,
  compat: serveCompat,
  stream: serveStream,
  grpcjs: serveGrpcJs,
};
kinds[kind]?.();

function createHttpServer(): http.Server {
  const text = answer.toString();
  return http.createServer({ keepAliveTimeout }, (req, res) => {
    let body = "";
    req.on("data", (chunk) => {
      body += chunk;
    });
    req.on("end", () => {
      JSON.parse(body);
      res.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
        "x-request-id": requestId,
      });
      res.end(text);
    });
  });
}

function serveGiven(): void {
  const { headers, body } = JSON.parse(answer.toString()) as { headers: http.OutgoingHttpHeaders; body: string };
  const length = Buffer.byteLength(body);
  listen(
    http.createServer({ keepAliveTimeout }, (req, res) => {
      req.resume();
      res.writeHead(200, { "content-length": length, ...headers });
      res.end(body);
    }),
  );
}

/** Two threads with a listener each, between which the system shares out connections. */
function serveHttpInThreads(): void {
  const server = createHttpServer();
  const port = isMainThread ? 0 : (workerData as number);
  server.listen({ port, host: "127.0.0.1", reusePort: true }, () => {
    if (!isMainThread) return console.log(port);
    const { port: workerData } = server.address() as AddressInfo;
    new Worker(new URL(import.meta.url), { workerData, argv: process.argv.slice(2) });
  });
}

function serveCompat(): void {
  const server = http2.createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      Buffer.concat(chunks);
      res.writeHead(200, { "content-type": "application/grpc+proto", "x-request-id": requestId });
      res.addTrailers({ "grpc-status": "0" });
      res.end(answer);
    });
  });
  listen(server);
}

function serveStream(): void {
  const server = http2.createServer();
  server.on("stream", (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      Buffer.concat(chunks);
      const headers = { ":status": 200, "content-type": "application/grpc+proto", "x-request-id": requestId };
      stream.respond(headers, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(answer);
    });
  });
  listen(server);
}

function serveGrpcJs(): void {
  const message = answer.subarray(5);
  const asIs = (bytes: Buffer) => bytes;
  const definition = {
    verifyKey: {
      path: "/latchkey.v1.KeysService/VerifyKey",
      requestStream: false,
      responseStream: false,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  };
  const server = new Server();
  server.addService(definition, {
    verifyKey: (_: unknown, callback: (error: null, message: Buffer) => void) => callback(null, message),
  });
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, port) => console.log(port));
}

function listen(server: http.Server | http2.Http2Server): void {
  server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
}
