import http from "node:http";
import http2 from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";

/* Callers that use one connection over and over until the server tells them to leave it, and keep book meanwhile. */

export interface Book {
  answered: number;
  /** Asked on a connection that the server had not ended, and never answered: what must not happen. */
  dropped: string[];
  /** Sent while the server's good-bye was under way, which says that they were not touched: safe to send elsewhere. */
  refused: number;
}

/** Verifies over one HTTP/1.1 connection until an answer says that it will be closed. */
export async function callOverHttp1(baseUrl: string, key: string, book: Book): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let told = false;
  while (!told) {
    try {
      const { status, close } = await postVerify(agent, baseUrl, key);
      if (status === 200) book.answered++;
      else book.dropped.push(`HTTP/1.1 status ${status}`);
      told = close;
    } catch (error) {
      book.dropped.push(`HTTP/1.1 ${(error as NodeJS.ErrnoException).code}`);
      told = true;
    }
  }
  agent.destroy();
}

function postVerify(agent: http.Agent, baseUrl: string, key: string): Promise<{ status: number; close: boolean }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const request = http.request(`${baseUrl}/v1/keys.verifyKey`, { method: "POST", headers, agent }, (response) => {
      response.on("error", reject).resume();
      response.on("end", () => {
        resolve({ status: response.statusCode as number, close: response.headers.connection === "close" });
      });
    });
    request.on("error", reject);
    request.end(JSON.stringify({ key }));
  });
}

/** Verifies over one HTTP/2 connection with gRPC, several calls at a time, until the server says GOAWAY. */
export async function callOverGrpc(baseUrl: string, key: string, book: Book, atOnce = 8): Promise<void> {
  const session = http2.connect(baseUrl);
  let lastServed = Number.POSITIVE_INFINITY;
  let ended = false;
  session.on("goaway", (_, lastStreamId) => {
    lastServed = lastStreamId;
  });
  session.on("close", () => {
    ended = true;
  });
  session.on("error", (error) => book.dropped.push(`HTTP/2 session ${error.message}`));
  const loop = async () => {
    while (lastServed === Number.POSITIVE_INFINITY && !ended) {
      const { id, status } = await grpcVerify(session, key);
      if (status === "0") book.answered++;
      else if (id > lastServed) book.refused++;
      else book.dropped.push(`HTTP/2 stream ${id} of ${lastServed}: ${status}`);
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  session.close();
}

function grpcVerify(session: http2.ClientHttp2Session, key: string): Promise<{ id: number; status: string }> {
  return new Promise((resolve) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/latchkey.v1.KeysService/VerifyKey",
      "content-type": "application/grpc",
      te: "trailers",
    });
    let status = "no trailers";
    stream.on("trailers", (trailers) => {
      status = String(trailers["grpc-status"]);
    });
    stream.on("error", (error) => {
      status = error.message;
    });
    stream.on("close", () => resolve({ id: stream.id ?? Number.POSITIVE_INFINITY, status }));
    stream.resume().end(grpcFrame(key));
  });
}

function grpcFrame(key: string): Buffer {
  const message = toBinary(VerifyKeyRequestSchema, create(VerifyKeyRequestSchema, { key }));
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}
