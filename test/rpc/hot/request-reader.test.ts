import { describe, expect, it } from "vitest";
import { type ReadResult, RequestReader } from "../../../src/rpc/hot/request-reader.ts";

const body = '{"key":"a"}';
const length = `Content-Length: ${body.length}`;
const lines = ["Host: keys.example.org:8080", "Content-Type: application/json", length];

const reader = new RequestReader(
  new Map([
    ["/a", "target a"],
    ["/ab", "target ab"],
  ]),
  65_536,
);

function find(text: string, start = 0): ReadResult {
  return reader.read(Buffer.from(text, "latin1"), start);
}

/** The target and the body of a supported request; otherwise what it is. */
function read(text: string, start = 0): string {
  const found = find(text, start);
  return found === "supported" ? `${reader.target}: ${text.slice(reader.bodyStart, reader.end)}` : found;
}

function request(headers: readonly string[], line = "POST /a HTTP/1.1"): string {
  return `${[line, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

describe("a supported request", () => {
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

describe("a request is incomplete", () => {
  it.each(["POST /a HTTP/1.1", "POST /ab HTTP/1.1", "GET /other?x HTTP/1.1"])(
    "as long as a byte of %s is missing, or of its head, and its end is known once its head is there",
    (line) => {
      const whole = request(lines, line);
      const isOther = line.startsWith("GET");
      for (let end = 1; end < whole.length; end++) {
        const hasHead = end >= whole.length - body.length;
        expect(find(whole.slice(0, end)), `${end}`).toBe(isOther && hasHead ? "other" : "incomplete");
        expect(reader.hasHead).toBe(end >= whole.length - body.length);
        if (reader.hasHead) expect(reader.end).toBe(whole.length);
      }
    },
  );

  it.each(["G", "POST", "PO", "OPTIONS ", "POST /v"])("after %j, and unknown after another byte", (text) => {
    expect(find(text)).toBe("incomplete");
    expect(find(`${text}\x01`)).toBe("unknown");
  });

  it("no longer than a head may be", () => {
    expect(find(`GET /${"a".repeat(8000)}`)).toBe("incomplete");
    expect(find(`GET /${"a".repeat(9000)}`)).toBe("unknown");
    expect(find(`POST /a HTTP/1.1\r\nx-long: ${"l".repeat(9000)}`)).toBe("unknown");
  });
});

describe("a request is not supported, but its end is known", () => {
  it.each(lines.slice(0, 2))("without or with two of %s", (line) => {
    expect(read(request(lines.filter((each) => each !== line)))).toBe("other");
    expect(read(request([...lines, line]))).toBe("other");
    expect(reader.end).toBe(request([...lines, line]).length);
  });

  it.each([
    "Content-Encoding: identity",
    "Trailer: a",
    "Connection: close",
    "Connection: keep-alive, upgrade",
    "Connection:",
    "Proxy-Connection: keep-alive",
    "Proxy-Connection: close",
    "Upgrade: h2c",
  ])("with %j", (line) => {
    expect(read(request([...lines, line]))).toBe("other");
    expect(read(request([line, ...lines]))).toBe("other");
  });

  it.each(["Host:", "Host: a b", "Host: a@b", "Host: [::1]"])("for %j", (host) => {
    expect(read(request(lines.with(0, host)))).toBe("other");
  });

  it.each(["text/plain", "application/json; charset=utf-8", "application/jsonx", ""])("for the type %j", (type) => {
    expect(read(request(lines.with(1, `Content-Type: ${type}`)))).toBe("other");
  });

  it.each(["GET /a HTTP/1.1", "PATCH /a HTTP/1.1", "POST /A HTTP/1.1", "POST /a/ HTTP/1.1", "POST /a? HTTP/1.1"])(
    "for %j",
    (line) => {
      expect(read(request(lines, line))).toBe("other");
    },
  );

  it("without a length: it has no body", () => {
    const whole = request(lines.slice(0, 2));
    expect(read(whole)).toBe("other");
    expect(reader.end).toBe(whole.length - body.length);
  });
});

describe("a request is left to Node, which finds its end", () => {
  it("without an end of its head", () => {
    const whole = request(lines);
    expect(read(whole.replace("\r\n\r\n", "\r\n\rx"))).toBe("unknown");
    expect(read(whole.replace("\r\n\r\n", "\r\n\n\n"))).toBe("unknown");
  });

  it.each([
    "Transfer-Encoding: chunked",
    "transfer-encoding: identity",
    "Expect: 100-continue",
    length,
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
    expect(read(request([...lines, line]))).toBe("unknown");
    expect(read(request([line, ...lines]))).toBe("unknown");
  });

  it.each(["011", "+11", "-11", "11 ", "1e1", "0xb", "11,11", "65537", "99999", "100000", ""])(
    "for the length %j",
    (text) => {
      expect(read(request(lines.with(2, `Content-Length: ${text}`)))).toBe("unknown");
    },
  );

  it.each([
    "POST  /a HTTP/1.1",
    "POST /a HTTP/1.0",
    "POST /a HTTP/1.1 ",
    "CONNECT a:80 HTTP/1.1",
    "post /a HTTP/1.1",
    "PROPFIND /a HTTP/1.1",
    "GET a HTTP/1.1",
    "GET http://a/a HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "\r\nPOST /a HTTP/1.1",
    " POST /a HTTP/1.1",
    "POST /\xe9 HTTP/1.1",
  ])("for %j", (line) => {
    expect(read(request(lines, line))).toBe("unknown");
  });
});
