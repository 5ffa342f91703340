import { version } from "../../gen/version.ts";
import { ApiError } from "./api-error.ts";
import { headerOf } from "./call.ts";
import type { Responder } from "./http-handler.ts";
import { jsonAnswer } from "./respond.ts";

const allow = "GET, HEAD";

/** What `/` answers: which service this is, for programs, and the API reference for people. */
export function createHomePage(): Responder {
  const about = JSON.stringify({ name: "latchkey", version, docs: "/docs", openapi: "/openapi.json" });
  return ({ method, headers }) => {
    if (method !== "GET" && method !== "HEAD")
      throw new ApiError("METHOD_NOT_ALLOWED", `this path takes ${allow} only`, { allow });
    if (!isBrowser(headerOf(headers, "accept") ?? "")) return jsonAnswer(200, about, ["vary", "accept"]);
    return { status: 302, headers: ["location", "/docs", "vary", "accept", "content-length", "0"], body: "" };
  };
}

/** Only browsers name HTML. A program that takes both gets JSON. */
function isBrowser(accept: string): boolean {
  return /\btext\/html\b/i.test(accept) && !/\bapplication\/json\b/i.test(accept);
}
