import { once } from "node:events";
import http2 from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";

/**
 * Sends one frame and answers the one that comes back. Throws unless the call went well: h2load goes by HTTP's status, which
 * is 200 for failed calls too.
 */
export async function callGrpc(port: number, frame: Uint8Array): Promise<Buffer> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  try {
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const stream = session.request({
      ":method": "POST",
      ":path": "/latchkey.v1.KeysService/VerifyKey",
      ...headers,
    });
    let status: unknown;
    for (const event of ["response", "trailers"]) {
      stream.on(event, (said: http2.IncomingHttpHeaders) => {
        status = said["grpc-status"] ?? status;
      });
    }
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.end(frame);
    await once(stream, "close");
    if (status !== "0") throw new Error(`a call ended with the status ${status}`);
    return Buffer.concat(chunks);
  } finally {
    session.close();
  }
}

/** A verification of the key as a gRPC client sends it. */
export function frameOf(key: string): Uint8Array {
  const message = toBinary(VerifyKeyRequestSchema, create(VerifyKeyRequestSchema, { key }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
