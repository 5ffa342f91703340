import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyBytesMax } from "../../rpc/read-body.ts";

/** Answers `Expect: 100-continue`. A body that is too large by its length is not asked for: the client gets its 413. */
export function askForBody(req: IncomingMessage, res: ServerResponse): void {
  const contentLength = req.headers["content-length"] ?? "0";
  if (Number(contentLength) <= bodyBytesMax) res.writeContinue();
  // The client may send the body nevertheless. Nobody can know whether what follows is the body or the next request.
  else if (req.httpVersionMajor === 1) res.setHeader("connection", "close");
}
