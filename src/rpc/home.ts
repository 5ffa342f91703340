import { version } from "../../gen/version.ts";
import { ApiError } from "./api-error.ts";
import type { HttpHandler } from "./http-handler.ts";
import { sendJson } from "./respond.ts";

const allow = "GET, HEAD";

/** What `/` answers: which service this is, for programs, and the API reference for people. */
export function createHomeHandler(): HttpHandler {
  const about = JSON.stringify({ name: "latchkey", version, docs: "/docs", openapi: "/openapi.json" });
  return async ({ method, headers: { accept = "" } }, res) => {
    if (method !== "GET" && method !== "HEAD")
      throw new ApiError("METHOD_NOT_ALLOWED", `this path takes ${allow} only`, { allow });
    await undefined;
    if (!isBrowser(accept)) sendJson(res, 200, about, ["vary", "accept"]);
    else if (!res.destroyed) res.writeHead(302, { location: "/docs", vary: "accept", "content-length": "0" }).end();
  };
}

/** Only browsers name HTML. A program that takes both gets JSON. */
function isBrowser(accept: string): boolean {
  return /\btext\/html\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept);
}
