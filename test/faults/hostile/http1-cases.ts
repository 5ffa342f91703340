/* Hostile bytes over HTTP/1.1, each with the statuses of all answers that are allowed. */

export interface Http1Case {
  readonly name: string;
  readonly say: string | Uint8Array;
  readonly statuses: readonly number[];
}

const body = '{"key":"cnry"}';
const json = "Content-Type: application/json";
const length = `Content-Length: ${body.length}`;
const end = "\r\n\r\n";

export const verify = request(`POST /v1/keys.verifyKey HTTP/1.1`, ["Host: x", json, length], body);
const chunks = (...texts: string[]) => texts.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join("");

/** A TLS 1.2 ClientHello, up to its random bytes. */
const clientHello = Buffer.concat([Buffer.from("16030100c8010000c40303", "hex"), Buffer.alloc(200, 7)]);

function request(line: string, headers: readonly string[], content = ""): string {
  return [line, ...headers].join("\r\n") + end + content;
}

/** A good request but for one header line more. */
function withHeader(line: string, content = body): string {
  return request("POST /v1/keys.verifyKey HTTP/1.1", ["Host: x", json, line], content);
}

const fine: [string, string][] = [
  ["Host: [", verify.replace("Host: x", "Host: [")],
  ["an empty Host", verify.replace("Host: x", "Host:")],
  ["HTTP/1.0 without Host", verify.replace("Host: x\r\n", "").replace("HTTP/1.1", "HTTP/1.0")],
  ["absolute-form", verify.replace("POST ", "POST http://cnry:1")],
  [
    "absolute-form with a query",
    verify.replace("POST /v1/keys.verifyKey", "POST HTTP://cnry/v1/keys.verifyKey?cnry=1"),
  ],
  [
    "Upgrade: h2c",
    withHeader(`${length}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk`),
  ],
  ["Upgrade: websocket", withHeader(`${length}\r\nConnection: Upgrade\r\nUpgrade: websocket`)],
  ["Expect of something else", withHeader(`${length}\r\nExpect: cnry`)],
  ["chunks", withHeader("Transfer-Encoding: chunked", `${chunks(body.slice(0, 3), body.slice(3))}0${end}`)],
  ["chunks and trailers", withHeader("Transfer-Encoding: chunked", `${chunks(body)}0\r\nX-Cnry: cnry${end}`)],
  ["empty lines first", `\r\n\r\n${verify}`],
  ["400 headers", withHeader(`${length}\r\n${"X-Cnry: cnry\r\n".repeat(400).trim()}`)],
];

const refused: [string, string | Uint8Array][] = [
  ["no Host in HTTP/1.1", verify.replace("Host: x\r\n", "")],
  ["garbage", Buffer.from([0, 1, 2, 3, 255, 254, 99, 110, 114, 121])],
  ["a TLS ClientHello", clientHello],
  ["nearly the preface of HTTP/2", `PRI * HTTP/2.0${end}XX${end}`],
  ["SSH", "SSH-2.0-cnry\r\n"],
  ["HTTP/9.9", verify.replace("HTTP/1.1", "HTTP/9.9")],
  ["a method in small letters", verify.replace("POST", "post")],
  ["an unknown method", verify.replace("POST", "CNRY")],
  ["CONNECT", request("CONNECT cnry:443 HTTP/1.1", ["Host: cnry"])],
  ["a target with a space", verify.replace("verifyKey", "verify Key")],
  ["lines that end in LF only", verify.replaceAll("\r\n", "\n")],
  ["a header without a colon", withHeader(`${length}\r\ncnry`)],
  ["a header with a space before its colon", withHeader(`${length}\r\nX-Cnry : cnry`)],
  ["a header with NUL", withHeader(`${length}\r\nX-Cnry: cnry\0`)],
  [
    "a header folded over two lines, the first empty",
    withHeader(`${length}\r\n folded`).replace("Host: x", "Host: x\r\n\tcnry\x01"),
  ],
  ["a negative length", withHeader("Content-Length: -1")],
  ["a length in hexadecimal", withHeader("Content-Length: 0xe")],
  ["a length beyond 64 bits", withHeader(`Content-Length: ${"9".repeat(30)}`)],
  ["a list of lengths", withHeader(`Content-Length: ${body.length}, ${body.length}`)],
  // Two readers of one of these could disagree on where it ends, and so on where the next request begins.
  ["a length and chunks", withHeader(`${length}\r\nTransfer-Encoding: chunked`, `0${end}${verify}`)],
  ["chunks and a length", withHeader(`Transfer-Encoding: chunked\r\n${length}`, `0${end}${verify}`)],
  ["two lengths", withHeader(`${length}\r\nContent-Length: 0`, `${body}${verify}`)],
  ["twice the same length", withHeader(`${length}\r\n${length}`, `${body}${verify}`)],
  ["an encoding beside chunks", withHeader("Transfer-Encoding: chunked, identity", `0${end}${verify}`)],
  ["an encoding that is nearly chunks", withHeader("Transfer-Encoding: xchunked", `0${end}${verify}`)],
  ["chunks with a space before the colon", withHeader("Transfer-Encoding : chunked", `0${end}${verify}`)],
  ["a chunk of no size", withHeader("Transfer-Encoding: chunked", `\r\n${body}\r\n0${end}`)],
  ["a chunk of a negative size", withHeader("Transfer-Encoding: chunked", `-1\r\n${body}\r\n0${end}`)],
  ["a chunk of a size beyond 64 bits", withHeader("Transfer-Encoding: chunked", `${"f".repeat(17)}\r\n${body}`)],
  ["a chunk longer than it says", withHeader("Transfer-Encoding: chunked", `1\r\n${body}\r\n0${end}`)],
  ["a chunk with extensions without end", withHeader("Transfer-Encoding: chunked", `1;${"cnry".repeat(10_000)}`)],
];

export const http1Cases: readonly Http1Case[] = [
  ...fine.map(([name, say]) => ({ name, say, statuses: [200] })),
  ...refused.map(([name, say]) => ({ name, say, statuses: [400] })),
  {
    name: "headers beyond 16 KiB",
    say: withHeader(`${length}\r\nX-Cnry: ${"cnry".repeat(5000)}`),
    statuses: [431],
  },
  { name: "a path beyond 16 KiB", say: verify.replace("verifyKey", "cnry".repeat(5000)), statuses: [431] },
  { name: "no version", say: `POST /v1/keys.verifyKey${end}`, statuses: [415] },
  { name: "a whole request, then garbage", say: `${verify}cnry${end}`, statuses: [200, 400] },
  { name: "TRACE", say: verify.replace("POST", "TRACE"), statuses: [405] },
  { name: "the asterisk", say: request("OPTIONS * HTTP/1.1", ["Host: x"]), statuses: [404] },
  { name: "Expect: 100-continue", say: withHeader(`${length}\r\nExpect: 100-continue`), statuses: [100, 200] },
  {
    name: "Expect: 100-continue with a length beyond 64 KiB",
    say: withHeader("Content-Length: 65537\r\nExpect: 100-continue", ""),
    statuses: [413],
  },
  {
    name: "Expect: 100-continue with a length beyond 64 KiB, for no path",
    say: withHeader("Content-Length: 65537\r\nExpect: 100-continue", verify).replace("keys.verifyKey", "cnry"),
    statuses: [404],
  },
  { name: "ten requests at once", say: verify.repeat(10), statuses: Array(10).fill(200) },
  {
    name: "a request that asks to close, and another",
    say: withHeader(`${length}\r\nConnection: close`, body + verify),
    statuses: [200],
  },
  {
    name: "a body that is longer than said",
    say: withHeader("Content-Length: 2", `{}${verify}`),
    statuses: [400, 200],
  },
  { name: "a length beyond 64 KiB, and no body", say: withHeader("Content-Length: 65537", ""), statuses: [413] },
  { name: "a gigabyte announced", say: withHeader("Content-Length: 1000000000", "x".repeat(70_000)), statuses: [413] },
];
