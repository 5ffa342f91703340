import { SeededRandom } from "../../domain/seeded-random.ts";
import type { RawRequest } from "./raw-exchange.ts";

/* Requests for the gateway: good ones, bad ones, and borderline cases. */

export function jsonCorpus(secrets: Readonly<Record<string, string>>): RawRequest[] {
  const good = secrets.plain as string;
  return [
    ...Object.entries(secrets).flatMap(([kind, key]) =>
      Object.entries(spellings(key)).map(([how, body]) => request(`${kind} key, ${how}`, body)),
    ),
    ...oddBodies(good).map((body) => request(`body ${JSON.stringify(body.toString("latin1").slice(0, 80))}`, body)),
    ...Object.entries(headerSets).flatMap(([how, headers]) =>
      [good, secrets.counted as string].flatMap((key) => [
        request(`good body with ${how}`, Buffer.from(JSON.stringify({ key })), headers),
        request(`bad body with ${how}`, Buffer.from(JSON.stringify({ key, no: 1 })), headers),
      ]),
    ),
    ...["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "post", "QUERY"].flatMap((method) => [
      { ...request(`${method}`, Buffer.from(JSON.stringify({ key: good }))), method },
      { ...request(`${method} without a body`, Buffer.alloc(0)), method },
    ]),
    ...paths.map((path) => ({ ...request(`at ${path}`, Buffer.from(JSON.stringify({ key: good }))), path })),
    ...inPieces(good),
    ...asBytes(good),
    ...made(secrets, 500),
  ];
}

const plainHeaders = { "content-type": "application/json" };

function request(name: string, body: Buffer, headers: RawRequest["headers"] = plainHeaders): RawRequest {
  const length = "transfer-encoding" in headers ? {} : { "content-length": `${body.length}` };
  return { name: `JSON: ${name}`, over: "HTTP/1.1", headers: { ...length, ...headers }, chunks: [body] };
}

/** Whose missing part is longer than a nested message with a length of one byte can hold. */
export const longQuery = Array.from({ length: 40 }, (_, index) => `permission.${index}`).join(" OR ");

function spellings(key: string): Record<string, Buffer> {
  const text = JSON.stringify(key);
  const bodies = {
    plain: `{"key":${text}}`,
    again: `{"key":${text}}`,
    "with its API": `{"key":${text},"apiId":"api_1"}`,
    "with its API first": `{"apiId":"api_1","key":${text}}`,
    "with another API": `{"key":${text},"apiId":"api_2"}`,
    "with space around": ` \t\r\n{ "key" : ${text} , "apiId" : "api_1" } \n`,
    "with null": `{"key":${text},"apiId":null}`,
    "with an empty API": `{"key":${text},"apiId":""}`,
    "with an unknown field": `{"key":${text},"apiid":"api_1"}`,
    "with the proto name": `{"key":${text},"api_id":"api_1"}`,
    twice: `{"key":${text},"key":${text}}`,
    "as an escape": `{"key":"\\u00${key.charCodeAt(0).toString(16)}${key.slice(1)}"}`,
    "under an escaped name": `{"k\\u0065y":${text}}`,
    "as Unicode": `{"key":${text},"apiId":"äpi"}`,
    "with a permission": `{"key":${text},"permissions":"docs.read"}`,
    "with a query": `{"permissions":"docs.read AND (docs.write OR admin)","key":${text},"apiId":"api_1"}`,
    "with a query of many": `{"key":${text},"permissions":"${longQuery}"}`,
    "with a bad query": `{"key":${text},"permissions":"docs.read AND"}`,
    "with an escaped query": `{"key":${text},"permissions":"docs\\u002eread"}`,
    "with an address": `{"key":${text},"ip":"10.1.2.3"}`,
    "with a mapped address": `{"key":${text},"ip":"::ffff:10.1.2.3","permissions":"admin"}`,
    "with an address of IPv6": `{"key":${text},"ip":"2001:db8::1"}`,
    "with another address": `{"key":${text},"ip":"192.0.2.1","permissions":"nothing"}`,
    "with a bad address": `{"key":${text},"ip":"10.1.2.3:80"}`,
    "with an empty address": `{"key":${text},"ip":""}`,
    "with two addresses": `{"key":${text},"ip":"10.1.2.3","ip":"10.1.2.3"}`,
    "with no costs in the list": `{"key":${text},"ratelimits":[]}`,
    "in an array": `[{"key":${text}}]`,
  };
  return Object.fromEntries(Object.entries(bodies).map(([how, body]) => [how, Buffer.from(body)]));
}

function oddBodies(key: string): Buffer[] {
  const text = JSON.stringify(key);
  const texts = [
    ...'|{}|[]|null|true|0|-|""|{|}|{{}}|nul|NaN|\'{}\'|{"key"}|{"key":}|{,}|{"key":1|undefined'.split("|"),
    ...["1", "1e400", "9007199254740993", "-0", "true", "null", "[]", "{}", '""', "0x10", "01", "1.", ".5", "'a'"].map(
      (value) => `{"key":${value}}`,
    ),
    ...["1", "{}", "[]", "true", '{"key":1}', '["a"]', "null", '"a" "b"', '"\t"', '"\u0000"', '"\u007f"'].flatMap(
      (value) => [`{"key":${text},"apiId":${value}}`, `{"apiId":${value},"key":${text}}`],
    ),
    `{"key":${text},}`,
    `{"key":${text}}{}`,
    `{"key":${text}} x`,
    `{"key":${text}}\u0000`,
    `{"key":${text} "apiId":"a"}`,
    `{"key":${text},"":"a"}`,
    `{"":${text}}`,
    `{"key":${text},"__proto__":{"apiId":"a"}}`,
    `{"__proto__":{"key":${text}}}`,
    `{"key":${text},"constructor":"a"}`,
    `{"key":${text},"toString":1}`,
    `{"key":"a","key":${text}}`,
    `{"key":1,"key":${text}}`,
    `{"key":null,"key":${text}}`,
    `{"apiId":"a","apiId":"api_1","key":${text}}`,
    `{"key":${text},"apiId":null,"apiId":"api_1"}`,
    `{"key":${text},"a":{"key":"b"}}`,
    `{"key":"\\ud800"}`,
    `{"key":"\\udc00\\ud800"}`,
    `{"key":"\\ud83d\\ude00"}`,
    `{"key":"\\u0000"}`,
    `{"key":"\\x41"}`,
    `{"key":"a\\"b"}`,
    `{"key":"\\\\"}`,
    `{"key":"/"}`,
    `{"key":"{}[],:"}`,
    `{"key":"a\nb"}`,
    `{"key":"${"k".repeat(16_384)}"}`,
    `{"key":"${"k".repeat(16_385)}"}`,
    `{"key":"${"é".repeat(16_384)}"}`,
    `{"key":"${"😀".repeat(8193)}"}`,
    `{"key":${text},"apiId":"${"a".repeat(255)}"}`,
    `{"key":${text},"apiId":"${"a".repeat(256)}"}`,
    `{"key":${text},"apiId":"${"😀".repeat(255)}"}`,
    `{"key":${text},"apiId":"${"😀".repeat(256)}"}`,
    `{"key":${text}}${" ".repeat(65_536 - 10 - key.length)}`,
    `{"key":${text}}${" ".repeat(65_536)}`,
    `${" ".repeat(70_000)}`,
    `{"key":"${"k".repeat(66_000)}"}`,
    `${'{"key":'.repeat(40)}1${"}".repeat(40)}`,
    "[".repeat(5000),
    `\ufeff{"key":${text}}`,
  ];
  const bytes = ["\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xe9", "\x80"].flatMap((bad) => [
    Buffer.from(`{"key":"${bad}"}`, "latin1"),
    Buffer.from(`{"key":${text},"apiId":"${bad}"}`, "latin1"),
    Buffer.from(`${bad}{"key":${text}}`, "latin1"),
  ]);
  return [...texts.map((each) => Buffer.from(each)), ...bytes];
}

const headerSets: Record<string, NonNullable<RawRequest["headers"]>> = {
  ...Object.fromEntries(
    [
      "application/json; charset=utf-8",
      "application/json;charset=UTF-8",
      'application/json; charset="utf-8"',
      "application/json ; charset = utf-8 ",
      "application/json; charset=latin1",
      "application/json; charset=utf-16",
      "application/json;",
      "application/json; boundary=x",
      "APPLICATION/JSON",
      "text/json",
      "text/plain",
      "application/json, application/json",
      "application/jsonx",
      "application/grpc",
      "application/proto",
      "application/connect+json",
      "application/x-www-form-urlencoded",
      "json",
      " ",
    ].map((type) => [`content type ${type}`, { "content-type": type }]),
  ),
  "no content type": {},
  "two content types": { "content-type": ["application/json", "text/plain"] },
  "two content types, the other first": { "content-type": ["text/plain", "application/json"] },
  ...Object.fromEntries(
    ["identity", "Identity", "", "gzip", "br", "identity, identity", "deflate"].map((encoding) => [
      `content encoding ${encoding}`,
      { ...plainHeaders, "content-encoding": encoding },
    ]),
  ),
  chunked: { ...plainHeaders, "transfer-encoding": "chunked" },
  "expect continue": { ...plainHeaders, expect: "100-continue" },
  "expect something": { ...plainHeaders, expect: "the-unexpected" },
  "an authorization": { ...plainHeaders, authorization: "Bearer x" },
  "an idempotency key": { ...plainHeaders, "idempotency-key": "a\tb" },
  "accept nothing": { ...plainHeaders, accept: "text/html;q=0", "accept-encoding": "gzip, br" },
  "connection close": { ...plainHeaders, connection: "close" },
  upgrade: { ...plainHeaders, connection: "upgrade", upgrade: "h2c" },
  "a deadline": { ...plainHeaders, "connect-timeout-ms": "1", "grpc-timeout": "1n" },
  "a bad deadline": { ...plainHeaders, "connect-timeout-ms": "soon" },
  "a long header": { ...plainHeaders, "x-long": "l".repeat(8000) },
  "a request id": { ...plainHeaders, "x-request-id": "mine" },
};

const paths = [
  "/v1/keys.verifyKey?",
  "/v1/keys.verifyKey?a=b",
  "/v1/keys.verifyKey/",
  "/v1/keys.verifykey",
  "//v1/keys.verifyKey",
  "/v1/keys%2EverifyKey",
  "/v1/keys.verifyKey#x",
  "http://example.org/v1/keys.verifyKey",
  "https://example.org:1/v1/keys.verifyKey?x",
  "/latchkey.v1.KeysService/VerifyKey",
  "/v1/keys.createKey",
];

function inPieces(key: string): RawRequest[] {
  const body = Buffer.from(JSON.stringify({ key, apiId: "api_1" }));
  return [1, 2, 7, 20, body.length - 1].flatMap((at) => {
    const chunks = [body.subarray(0, at), body.subarray(at)];
    const length = { "content-length": `${body.length}` };
    return [
      { ...request(`chunked in two at ${at}`, body), headers: plainHeaders, chunks },
      { ...request(`in two at ${at}`, body), headers: { ...plainHeaders, ...length }, chunks },
    ];
  });
}

/** Requests that Node's client would not send. The last one of each asks the server to close. */
function asBytes(key: string): RawRequest[] {
  const body = JSON.stringify({ key });
  const bad = JSON.stringify({ key, x: 1 });
  const head = (...lines: string[]) => `${["POST /v1/keys.verifyKey HTTP/1.1", ...lines].join("\r\n")}\r\n\r\n`;
  const type = "Content-Type: application/json";
  const length = (text: string) => `Content-Length: ${text.length}`;
  const close = "Connection: close";
  const host = "Host: a";
  const first = head(host, type, length(body)) + body;
  const last = head(host, type, length(body), close) + body;
  const cases: Record<string, string | string[]> = {
    "two in one go": first + last,
    "a bad one and a good one": head(host, type, length(bad)) + bad + last,
    "a good one and a bad one": first + head(host, type, length(bad), close) + bad,
    "five in one go": first.repeat(4) + last,
    "no host": head(type, length(body), close) + body,
    "an empty host": head("Host:", type, length(body), close) + body,
    "two hosts": head(host, "Host: b", type, length(body), close) + body,
    "HTTP/1.0": last.replace("HTTP/1.1", "HTTP/1.0"),
    "HTTP/1.0 without a host": last.replace("HTTP/1.1", "HTTP/1.0").replace("Host: a\r\n", ""),
    "garbage after it": `${first}garbage\r\n\r\n`,
    "two lengths": head(host, type, length(body), length(body), close) + body,
    "a length and chunks": head(host, type, length(body), "Transfer-Encoding: chunked", close) + body,
    "an announced giant": head(host, type, "Content-Length: 65537", close),
    "trailers after chunks": `${head(host, type, "Transfer-Encoding: chunked", close)}${body.length.toString(16)}\r\n${body}\r\n0\r\nX-Trailer: a\r\n\r\n`,
    "byte by byte": [...last.slice(0, 200)].concat(last.slice(200)),
    "folded header": head(host, `${type};\r\n charset=utf-8`, length(body), close) + body,
    "header in capitals": head(host, "CONTENT-TYPE: application/json", length(body), close) + body,
  };
  return Object.entries(cases).map(([name, text]) => ({
    name: `JSON: ${name}`,
    over: "bytes",
    chunks: [text].flat().map((piece) => Buffer.from(piece, "latin1")),
  }));
}

/** Random objects made of right and wrong parts. */
function made(secrets: Readonly<Record<string, string>>, count: number): RawRequest[] {
  const random = new SeededRandom(6);
  const names = [
    "key",
    "key",
    "key",
    "apiId",
    "apiId",
    "permissions",
    "ip",
    "api_id",
    "Key",
    "",
    "__proto__",
    "k\\u0065y",
    "ключ",
  ];
  const others = [
    "null",
    "1",
    '"api_1"',
    '"docs.read OR admin"',
    '"10.1.2.3"',
    '"a b"',
    '"\\n"',
    '"é"',
    "[]",
    '{"key":"a"}',
    "true",
    '""',
    "-1.5e3",
    '"\\ud83d"',
  ];
  const space = () => random.pick(["", "", "", " ", "\n", "\t ", "\u00a0", "/**/"]);
  return Array.from({ length: count }, (_, n) => {
    const members = Array.from({ length: random.integer(0, 4) }, () => {
      const value = random.chance(0.6) ? JSON.stringify(random.pick(Object.values(secrets))) : random.pick(others);
      return `${space()}"${random.pick(names)}"${space()}:${space()}${value}${space()}`;
    });
    return request(`made ${n}`, Buffer.from(`{${members.join(",")}}`));
  });
}
