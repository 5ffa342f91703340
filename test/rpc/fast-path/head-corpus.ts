import type { RawRequest } from "./raw-exchange.ts";

/*
 * HTTP/1.1 requests as bytes, with heads that Node's client would not send and with ordinary ones. Each is
 * followed by a request that asks the server to close.
 */

export function headCorpus(secrets: Readonly<Record<string, string>>): RawRequest[] {
  const good = JSON.stringify({ key: secrets.plain });
  return [
    ...Object.entries(secrets).map(([kind, key]) => request(`${kind} key`, usual(JSON.stringify({ key })))),
    ...together.map((kind) =>
      request(`six of the ${kind} key`, usual(JSON.stringify({ key: secrets[kind] })).repeat(6)),
    ),
    request("one of each", together.map((kind) => usual(JSON.stringify({ key: secrets[kind] }))).join("")),
    ...clients.map((lines, n) =>
      request(`as client ${n} asks`, head([...lines, `Content-Length: ${good.length}`]) + good),
    ),
    ...oddLines.flatMap((line) => [
      request(`with ${line} first`, head([line, ...plain(good)]) + good),
      request(`with ${line} last`, head([...plain(good), line]) + good),
    ]),
    ...plain(good).flatMap((line, n) =>
      respellings(line).map((spelling) => {
        const lines = plain(good).with(n, spelling);
        return request(`with ${JSON.stringify(spelling)}`, head(lines) + good);
      }),
    ),
    ...plain(good).flatMap((line, n) => [
      request(`without ${line}`, head(plain(good).toSpliced(n, 1)) + good),
      request(`with ${line} twice`, head(plain(good).toSpliced(n, 0, line)) + good),
    ]),
    ...requestLines.map((line) => request(line, head(plain(good), line) + good)),
    ...["\n", "\r", "\r\r\n", "\n\r", "\r\n "].map((end) =>
      request(`lines that end in ${JSON.stringify(end)}`, `${[verify, ...plain(good), "", ""].join(end)}${good}`),
    ),
    ...[7000, 9000, 20_000].map((n) =>
      request(`a header of ${n} bytes`, head([...plain(good), `x-long: ${"l".repeat(n)}`]) + good),
    ),
    request("200 headers", head([...plain(good), ...Array.from({ length: 200 }, (_, n) => `x-${n}: ${n}`)]) + good),
    ...[1, 10, 40, 100, 130].map((at) => {
      const [first] = request(`in two at ${at}`, usual(good)).chunks as [Buffer];
      return { ...request(`in two at ${at}`, ""), chunks: [first.subarray(0, at), first.subarray(at), last] };
    }),
    ...[-1, 1, -good.length, 100_000].map((more) =>
      request(`a length ${more} off`, head(["Host: a", type, `Content-Length: ${good.length + more}`]) + good),
    ),
  ];
}

/** Keys that do not count: the others would tell the order of calls, which is the server's own affair. */
const together = ["plain", "disabled", "nestedMeta", "unicodeMeta", "unknown", "unavailable", "broken"];
const verify = "POST /v1/keys.verifyKey HTTP/1.1";
const type = "Content-Type: application/json";
const last = Buffer.from("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

function request(name: string, text: string): RawRequest {
  return { name: `by hand: ${name}`, over: "bytes", chunks: [Buffer.from(text, "latin1"), last] };
}

function head(lines: readonly string[], line = verify): string {
  return `${[line, ...lines].join("\r\n")}\r\n\r\n`;
}

function plain(body: string): string[] {
  return ["Host: 127.0.0.1:8080", type, `Content-Length: ${body.length}`];
}

function usual(body: string): string {
  return head(plain(body)) + body;
}

/** The other headers of widely used clients. */
const clients = [
  ["Host: 127.0.0.1:8080", "User-Agent: curl/8.5.0", "Accept: */*", type],
  ["host: localhost", "connection: keep-alive", "content-type: application/json", "accept: */*", "user-agent: node"],
  ["Host: keys.example.org", "User-Agent: Go-http-client/1.1", type, "Accept-Encoding: gzip"],
  ["Host: [::1]:8080", "User-Agent: python-requests/2.32.3", "Connection: keep-alive", type],
  [
    "Accept: application/json",
    type,
    "Host: a_b",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ],
  ["HOST: A", "CONTENT-TYPE: APPLICATION/JSON", "CONNECTION: KEEP-ALIVE", "AUTHORIZATION: Bearer x"],
];

const oddLines = [
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "transfer-encoding : chunked",
  "Content-Encoding: gzip",
  "Content-Encoding: identity",
  "Content-Encoding:",
  "Expect: 100-continue",
  "Expect: more",
  "Upgrade: h2c",
  "Connection: Upgrade",
  "Connection: close",
  "Connection: keep-alive",
  "Connection: keep-alive, close",
  "Connection: x-y",
  "Connection:",
  "Keep-Alive: timeout=5",
  "Trailer: x",
  "TE: trailers",
  "Content-Length: 1",
  "Content-Type: text/plain",
  "Host: b",
  "Cookie: a=b; c=d",
  "Idempotency-Key: a",
  "X-Empty:",
  "X-Spaces:   a   ",
  "X-Tab:\ta\t",
  "X-Latin: \xe9",
  "X-Delete: \x7f",
  "X-Nul: \0",
  "X-Bell: \x07",
  "X Space: a",
  "X-Name\xe9: a",
  "X(Bracket): a",
  ": nameless",
  "no colon",
  " folded",
  "\tfolded",
  "",
];

function respellings(line: string): string[] {
  const [name, value] = line.split(": ") as [string, string];
  return [
    `${name}:${value}`,
    `${name}:   ${value}`,
    `${name}:\t${value}`,
    `${name}: ${value} `,
    `${name} : ${value}`,
    `${name.toLowerCase()}: ${value.toUpperCase()}`,
    `${name.toUpperCase()}: ${value.toLowerCase()}`,
    `${name}: ${value}, ${value}`,
    `${name}: ${value};`,
    `${name}: ${value}; charset=utf-8`,
    `${name}: 0${value}`,
    `${name}: +${value}`,
    `${name}: ${value}x`,
    `${name}: [${value}`,
    `${name}: a b`,
    `${name}: a@b`,
    `${name}: -1`,
    `${name}: 99999999999999999999`,
    `${name}:`,
    `${name}:  `,
    `${name}: "${value}"`,
    `${name}:\r\n ${value}`,
  ];
}

const requestLines = [
  "POST /v1/keys.verifyKey HTTP/1.0",
  "POST /v1/keys.verifyKey HTTP/1.2",
  "POST /v1/keys.verifyKey HTTP/2.0",
  "POST /v1/keys.verifyKey http/1.1",
  "POST /v1/keys.verifyKey HTTP/1.1 ",
  "POST  /v1/keys.verifyKey HTTP/1.1",
  "POST /v1/keys.verifyKey  HTTP/1.1",
  "POST /v1/keys.verifyKey",
  "post /v1/keys.verifyKey HTTP/1.1",
  "PUT /v1/keys.verifyKey HTTP/1.1",
  "GET /v1/keys.verifyKey HTTP/1.1",
  "POST /v1/keys.verifyKey? HTTP/1.1",
  "POST /v1/keys.verifyKey?a=b HTTP/1.1",
  "POST /v1/keys.verifyKey/ HTTP/1.1",
  "POST /v1/keys.createKey HTTP/1.1",
  "POST http://a/v1/keys.verifyKey HTTP/1.1",
  "POST * HTTP/1.1",
  "CONNECT a:1 HTTP/1.1",
  "\r\nPOST /v1/keys.verifyKey HTTP/1.1",
  "\nPOST /v1/keys.verifyKey HTTP/1.1",
  " POST /v1/keys.verifyKey HTTP/1.1",
  "",
];
