import { describe, expect, it } from "vitest";
import { PlainRequestReader } from "../../../src/rpc/hot/plain-request.ts";

const body = '{"key":"a"}';
const length = `Content-Length: ${body.length}`;
const lines = ["Host: keys.example.org:8080", "Content-Type: application/json", length];

function read(text: string, start = 0): string | undefined {
  const reader = new PlainRequestReader(
    new Map([
      ["/a", "target a"],
      ["/ab", "target ab"],
    ]),
  );
  const bytes = Buffer.from(text, "latin1");
  const target = reader.read(bytes, start);
  return target && `${target}: ${bytes.toString("latin1", reader.bodyStart, reader.end)}`;
}

function request(headers: readonly string[], line = "POST /a HTTP/1.1"): string {
  return `${[line, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

describe("a plain request", () => {
  it("is read with its target and its body, wherever it begins", () => {
    const two = request(lines) + request(lines, "POST /ab HTTP/1.1");
    expect(read(two)).toBe(`target a: ${body}`);
    expect(read(two, request(lines).length)).toBe(`target ab: ${body}`);
  });

  it.each([
    [...lines, "Connection: keep-alive", "User-Agent: x/1 (y; z)", "Accept: */*", "X-Empty:"],
    lines.map((line) => line.toUpperCase()),
    lines.map((line) => line.toLowerCase().replace(": ", ":")),
    lines.toReversed(),
    [...lines, `x-long: ${"l".repeat(8000)}`],
  ])("may say more, in any case and order: %#", (...headers) => {
    expect(read(request(headers))).toBe(`target a: ${body}`);
  });
});

describe("a request is odd", () => {
  it("as long as a byte of it is missing", () => {
    const whole = request(lines);
    for (let end = 0; end < whole.length; end++) expect(read(whole.slice(0, end))).toBeUndefined();
  });

  it("without an end of its head", () => {
    const whole = request(lines);
    expect(read(whole.replace("\r\n\r\n", "\r\n\rx"))).toBeUndefined();
    expect(read(whole.replace("\r\n\r\n", "\r\n\n\n"))).toBeUndefined();
  });

  it.each(lines)("without or with two of %s", (line) => {
    expect(read(request(lines.filter((each) => each !== line)))).toBeUndefined();
    expect(read(request([...lines, line]))).toBeUndefined();
  });

  it.each([
    "Transfer-Encoding: chunked",
    "Content-Encoding: identity",
    "Expect: 100-continue",
    "Upgrade: h2c",
    "Trailer: a",
    "Connection: close",
    "Connection: keep-alive, upgrade",
    "Connection:",
    "X Space: a",
    "X-Space : a",
    " folded",
    ": nameless",
    "colonless",
    "X-Cr: a\r\tb: c",
    "X-Lf: a\nb: c",
    "X-Nul: \0",
    "X-Latin: \xe9",
    `x-long: ${"l".repeat(9000)}`,
  ])("with %j", (line) => {
    expect(read(request([...lines, line]))).toBeUndefined();
    expect(read(request([line, ...lines]))).toBeUndefined();
  });

  it.each(["Host:", "Host: a b", "Host: a@b", "Host: [::1]"])("for %j", (host) => {
    expect(read(request(lines.with(0, host)))).toBeUndefined();
  });

  it.each(["text/plain", "application/json; charset=utf-8", "application/jsonx", ""])("for the type %j", (type) => {
    expect(read(request(lines.with(1, `Content-Type: ${type}`)))).toBeUndefined();
  });

  it.each(["0", "011", "+11", "-11", "11 ", "1e1", "0xb", "11,11", "100000", ""])("for the length %j", (text) => {
    expect(read(request(lines.with(2, `Content-Length: ${text}`)))).toBeUndefined();
  });

  it.each([
    "GET /a HTTP/1.1",
    "post /a HTTP/1.1",
    "POST /A HTTP/1.1",
    "POST /a/ HTTP/1.1",
    "POST /a? HTTP/1.1",
    "POST  /a HTTP/1.1",
    "POST /a HTTP/1.0",
    "POST /a HTTP/1.1 ",
    "POST /b HTTP/1.1",
    "\r\nPOST /a HTTP/1.1",
  ])("for %j", (line) => {
    expect(read(request(lines, line))).toBeUndefined();
  });
});
