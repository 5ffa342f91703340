import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Responder } from "./http-handler.ts";

/**
 * The API reference for people, generated from the contract. The page may load nothing and run nothing: it has the one
 * style sheet that is in it.
 */
export function createDocsPage(): Responder {
  const body = readFileSync(new URL("../../gen/docs.html", import.meta.url));
  const [, style = ""] = /<style>(.*?)<\/style>/s.exec(body.toString("utf8")) ?? [];
  const hash = createHash("sha256").update(style).digest("base64");
  const headers = [
    ...["content-type", "text/html; charset=utf-8"],
    ...["content-length", `${body.length}`],
    ...[
      "content-security-policy",
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    ],
    ...["x-content-type-options", "nosniff"],
    ...["referrer-policy", "no-referrer"],
  ];
  const answer = { status: 200, headers, body };
  return () => answer;
}
