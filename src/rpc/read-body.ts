import type { IncomingMessage } from "node:http";
import { ApiError } from "./api-error.ts";

export const bodyBytesMax = 65_536;

/** The client went away before its request was whole: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** Reads the whole body, as it came: nothing is decompressed. Throws `ApiError` once it is too large, or `ClientGone`. */
export function readBody(req: IncomingMessage): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => {
      // What is still coming is read and dropped, so that the client gets to see the answer.
      req.off("data", onData).resume();
      reject(new ApiError("PAYLOAD_TOO_LARGE", `the body is larger than ${bodyBytesMax} bytes`));
    };
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > bodyBytesMax) tooLarge();
      else chunks.push(chunk);
    };
    req.on("data", onData);
    req.on("end", () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    req.on("error", (cause) => reject(new ClientGone("the request broke off", { cause })));
    req.on("close", () => reject(new ClientGone("the request broke off")));
    if (Number(req.headers["content-length"]) > bodyBytesMax) tooLarge();
  });
}
