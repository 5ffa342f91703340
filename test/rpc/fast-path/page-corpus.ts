import { routes } from "../../../gen/latchkey/v1/services.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import type { RawRequest } from "./raw-exchange.ts";

/*
 * Requests of HTTP/1.1 that are answered by their heads alone, as bytes: `/v1/authz` with every HTTP method, methods by
 * GET, probes, pages and paths that are not there. Each is followed by a request that asks the server to close.
 */

export function pageCorpus(secrets: Readonly<Record<string, string>>): RawRequest[] {
  const key = secrets.plain as string;
  const bearer = `Authorization: Bearer ${key}`;
  const authz = (name: string, lines: readonly string[], target = "/v1/authz", method = "GET", body = "") =>
    request(`authz ${name}`, `${method} ${target} HTTP/1.1`, ["Host: a", ...lines], body);
  return [
    ...Object.entries(secrets).map(([kind, secret]) => authz(`of the ${kind} key`, [`x-api-key: ${secret}`])),
    ...methods.map((method) => authz(`by ${method}`, [bearer], "/v1/authz?apiId=api_1", method)),
    ...methods.map((method) =>
      authz(`by ${method}, with a body`, [bearer, "Content-Length: 5"], undefined, method, "hello"),
    ),
    authz("with a body of a kilobyte", [bearer, "Content-Length: 1000"], undefined, "POST", "b".repeat(1000)),
    authz("with a body in chunks", [bearer, "Transfer-Encoding: chunked"], undefined, "PUT", "1\r\na\r\n0\r\n\r\n"),
    authz("with a length that is too long", [bearer, "Content-Length: 99999"], undefined, "POST", "hello"),
    ...queries.map((query) => authz(`asked ${query}`, [bearer, "X-Real-IP: 192.0.2.7"], `/v1/authz${query}`)),
    ...authorizations(key).map((line) => authz(`with ${JSON.stringify(line)}`, [line])),
    ...addresses.map((lines) => authz(`from ${lines}`, [bearer, ...lines], "/v1/authz?ipHeader=X-Forwarded-For")),
    ...["Host", "Authorization", "Cookie", "Referer", "Set-Cookie", "x-twice"].map((name) =>
      authz(`with the address in ${name}`, twice(name, bearer), `/v1/authz?ipHeader=${name}`),
    ),
    ...oddLines.flatMap((line) => [
      authz(`with ${JSON.stringify(line)} first`, [line, bearer]),
      authz(`with ${JSON.stringify(line)} last`, [bearer, line]),
      request(`a page with ${JSON.stringify(line)}`, "GET /readyz HTTP/1.1", ["Host: a", line]),
    ]),
    ...hosts.flatMap((lines) => [
      request(`authz with ${JSON.stringify(lines)}`, "GET /v1/authz HTTP/1.1", [...lines, bearer]),
      request(`a page with ${JSON.stringify(lines)}`, "GET /livez HTTP/1.1", lines),
    ]),
    ...targets.flatMap((target) =>
      ["GET", "HEAD", "POST"].map((method) =>
        request(`${method} ${target}`, `${method} ${target} HTTP/1.1`, ["Host: a"]),
      ),
    ),
    ...["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", ""].map((version) =>
      request(`in ${JSON.stringify(version)}`, `GET /readyz ${version}`, ["Host: a"]),
    ),
    ...["text/html", "text/html, application/json", "*/*", ""].map((accept) =>
      request(`home as ${accept}`, "GET / HTTP/1.1", ["Host: a", `Accept: ${accept}`]),
    ),
    ...routes.flatMap(({ path }) =>
      ["GET", "HEAD", "PUT", "OPTIONS"].flatMap((method) => [
        request(`${method} ${path}`, `${method} ${path} HTTP/1.1`, ["Host: a"]),
        request(`${method} ${path} by root`, `${method} ${path}?keyId=key_of_plain HTTP/1.1`, ["Host: a", root]),
      ]),
    ),
    ...queries.map((query) => request(`a query ${query}`, `GET /v1/keys.getKey${query} HTTP/1.1`, ["Host: a", root])),
    request(
      "GET with a body",
      "GET /v1/keys.getKey?keyId=key_of_plain HTTP/1.1",
      ["Host: a", root, "Content-Length: 2"],
      "{}",
    ),
    request("six in one", `${`GET /livez HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(5)}GET /readyz HTTP/1.1`, ["Host: a"]),
    ...[1, 5, 20, 30, 60].map((at) => {
      const [first = Buffer.alloc(0)] = authz(
        "in two",
        [bearer, "Content-Length: 5"],
        undefined,
        "POST",
        "hello",
      ).chunks;
      return { ...authz(`in two at ${at}`, []), chunks: [first.subarray(0, at), first.subarray(at), last] };
    }),
  ];
}

const root = `Authorization: Bearer ${testRootKey}`;
const last = Buffer.from("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

function request(name: string, line: string, lines: readonly string[], body = ""): RawRequest {
  const text = `${[line, ...lines].join("\r\n")}\r\n\r\n${body}`;
  return { name: `page: ${name}`, over: "bytes", chunks: [Buffer.from(text, "latin1"), last] };
}

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "TRACE", "M-SEARCH", "SOURCE"];

const queries = [
  "?",
  "?apiId=api_1",
  "?apiId=api_1&permissions=docs.read",
  "?permissions=docs.read%20AND%20docs.write",
  "?permissions=docs.read+OR+admin",
  "?permissions=%zz",
  "?apiId=%E4%F6",
  "?apiId=a%00b",
  "?cost=3&ratelimitCost=0",
  "?cost=-1",
  "?ip=192.0.2.7",
  "?ip=here",
  "?ipHeader=X-Real-IP",
  "?ipHeader=x-real-ip&ip=192.0.2.7",
  "?ipHeader=X%20Real",
  "?apiId=a#fragment",
  "?a?b=c",
  "?__proto__=1",
  "?keyId=key_of_plain",
  "?keyId=key_of_plain&keyId=key_of_few",
  "?keyId=%6bey_of_plain",
];

function authorizations(key: string): string[] {
  const names = ["Authorization", "authorization", "X-API-Key", "x-api-key", "X-Latchkey-Root-Key"];
  const values = ["", " ", key, ` ${key}`, `Bearer ${key}`, ` bearer  ${key} `, `\tBearer ${key}\t`, `Bearer ${key} x`];
  return [
    ...names.flatMap((name) => values.map((value) => `${name}:${value}`)),
    `Authorization: Basic abc\r\nX-API-Key: ${key}`,
    `Authorization: Bearer wrong\r\nX-API-Key: ${key}`,
    `Authorization: Bearer ${key}\r\nAuthorization: Bearer wrong`,
    `Authorization: Bearer wrong\r\nAuthorization: Bearer ${key}`,
    `X-API-Key: ${key}\r\nX-API-Key: ${key}`,
    `Authorization: Bearer\r\n ${key}`,
    `X-API-Key: ${"k".repeat(7000)}`,
    `X-API-Key: ${"k".repeat(9000)}`,
  ];
}

const addresses = [
  [],
  ["X-Forwarded-For: 192.0.2.7"],
  ["X-Forwarded-For: 192.0.2.7, 198.51.100.7"],
  ["X-Forwarded-For: 192.0.2.7", "x-forwarded-for: 198.51.100.7"],
  ["X-Forwarded-For: 192.0.2.7", "x-forwarded-for:"],
  ["X-Forwarded-For:"],
  ["X-Forwarded-For: unknown"],
];

function twice(name: string, bearer: string): string[] {
  return [`${name}: 192.0.2.7`, `${name}: 198.51.100.7`, bearer];
}

const oddLines = [
  "Connection: close",
  "connection: Close",
  "Connection: close ",
  "Connection: keep-alive",
  "Connection: keep-alive, close",
  "Connection: te, keep-alive",
  "Connection: x-y",
  "Connection:",
  "Proxy-Connection: close",
  "Keep-Alive: timeout=5",
  "Transfer-Encoding: identity",
  "transfer-encoding : chunked",
  "Content-Length: 0",
  "Content-Length: 00",
  "Content-Length: +0",
  "Content-Length:",
  "Content-Encoding: gzip",
  "Content-Type: application/grpc",
  "Expect: 100-continue",
  "Expect: more",
  "Trailer: x",
  "TE: trailers",
  "Origin: https://example.org",
  "Cookie: a=b; c=d\r\nCookie: e=f",
  "Set-Cookie: a\r\nSet-Cookie: b",
  "Accept: text/html\r\nAccept: application/json",
  "X-Tab:\ta\t",
  "X-Latin: \xe9",
  "X-Nul: \0",
  "X Space: a",
  ": nameless",
  "no colon",
  " folded",
  "\tfolded",
  "X-Cr: a\rb",
  "X-Lf: a\nb",
  "__proto__: a",
  "constructor: a",
  "",
];

const hosts = [[], ["Host:"], ["Host: a", "Host: b"], ["host: [::1]:80"], ["Host: a b"], ["Host : a"], ["HOST:\ta"]];

const targets = [
  "/",
  "/?a=b",
  "/livez",
  "/livez?x",
  "/livez/",
  "/livez#a",
  "/%6civez",
  "//livez",
  "/./livez",
  "/LIVEZ",
  "/docs",
  "/openapi.json",
  "/readyz",
  "/v1/authz/",
  "/v1/nothing",
  "/latchkey.v1.KeysService/VerifyKey",
  "/latchkey.v1.KeysService/GetKey?encoding=json",
  "/latchkey.v1.KeysService/Nothing",
  '/"<>\\^`{|}',
  "/a\x7f",
  "/\xe9",
  "http://a/livez",
  "HTTP://b/v1/authz?apiId=api_1",
  "https://a",
  "*",
  "livez",
];
