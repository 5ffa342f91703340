import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { version } from "../../gen/version.ts";
import { ApiError } from "./api-error.ts";
import { headerOf } from "./call.ts";
import type { Responder } from "./http-handler.ts";
import { jsonAnswer } from "./respond.ts";

/** The pages that say what this service is, by their paths. */
export function createDocumentPages(): Map<string, Responder> {
  return new Map([
    ["/", createHomePage()],
    ["/openapi.json", createOpenApiPage()],
    ["/docs", createDocsPage()],
  ]);
}

const allow = "GET, HEAD";

/** Which service this is, for programs, and the API reference for people. */
function createHomePage(): Responder {
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

/** The OpenAPI document, generated together with the code that it describes. */
function createOpenApiPage(): Responder {
  // As bytes, shared by all answers: a string would be copied for each client that reads slowly.
  const answer = jsonAnswer(200, readFileSync(new URL("../../gen/openapi.json", import.meta.url)));
  return () => answer;
}

/**
 * The API reference for people, generated from the contract. The page may load nothing and run nothing: it has the one
 * style sheet that is in it.
 */
function createDocsPage(): Responder {
  const body = readFileSync(new URL("../../gen/docs.html", import.meta.url));
  const [, style = ""] = /<style>(.*?)<\/style>/s.exec(body.toString("utf8")) ?? [];
  const hash = createHash("sha256").update(style).digest("base64");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-length": `${body.length}`,
    "content-security-policy": `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
  const answer = { status: 200, headers: Object.entries(headers).flat(), body };
  return () => answer;
}
