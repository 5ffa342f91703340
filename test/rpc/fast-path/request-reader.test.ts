import { describe, expect, it } from "vitest";
import { type ReaderTarget, type ReadResult, RequestReader } from "../../../src/rpc/fast-path/request-reader.ts";

const body = '{"key":"a"}';
const length = `Content-Length: ${body.length}`;
const lines = ["Host: keys.example.org:8080", "Content-Type: application/json", length];

interface Named extends ReaderTarget {
  readonly name: string;
}

const targets: Record<string, Named> = {
  "POST /a": { name: "target a", readsJson: true },
  "POST /ab": { name: "target ab", readsJson: true },
};
const page: Named = { name: "page", readsJson: false };

function readerWith(ignoresOrigin: boolean): RequestReader<Named> {
  return new RequestReader({
    hot: new Map([["/a", targets["POST /a"] as Named]]),
    find: (method, url) => (url.startsWith("/node") ? undefined : (targets[`${method} ${url.split("?")[0]}`] ?? page)),
    ignoresOrigin,
    bodyBytesMax: 65_536,
  });
}

const reader = readerWith(true);

function find(text: string, start = 0): ReadResult {
  return reader.read(Buffer.from(text, "latin1"), start);
}

/** The target and the body of a supported request; otherwise what it is. */
function read(text: string, start = 0): string {
  const found = find(text, start);
  return found === "supported" ? `${reader.target?.name}: ${text.slice(reader.bodyStart, reader.end)}` : found;
}

function request(headers: readonly string[], line = "POST /a HTTP/1.1"): string {
  return `${[line, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

describe("a supported call", () => {
  it("is read with its target and its body, wherever it begins", () => {
    const two = request(lines) + request(lines, "POST /ab HTTP/1.1");
    expect(read(two)).toBe(`target a: ${body}`);
    expect(read(two, request(lines).length)).toBe(`target ab: ${body}`);
    expect(read(request(lines, "POST /a?x=1 HTTP/1.1"))).toBe(`target a: ${body}`);
  });

  it.each([
    [...lines, "Connection: keep-alive", "User-Agent: x/1 (y; z)", "Accept: */*", "X-Empty:"],
    lines.map((line) => line.toUpperCase()),
    lines.map((line) => line.toLowerCase().replace(": ", ":")),
    lines.toReversed(),
    [...lines, `x-long: ${"l".repeat(8000)}`],
    [...lines, "Origin: https://example.org"],
    [...lines, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB"],
    [...lines, "Connection: keep-alive, te", "TE: trailers"],
    lines.with(0, "Host: [::1]:8080"),
    lines.with(0, "Host:"),
    lines.with(1, "Content-Type: application/json; charset=utf-8"),
    lines.with(1, 'Content-Type: application/json ;charset = "UTF-8" '),
  ])("may say more, in any case and order: %#", (...headers) => {
    expect(read(request(headers))).toBe(`target a: ${body}`);
    expect(reader.isLast).toBe(false);
  });

  it.each(["Connection: close", "connection:CLOSE"])("says with %j that it is the last", (line) => {
    expect(read(request([...lines, line]))).toBe(`target a: ${body}`);
    expect(reader.isLast).toBe(true);
    expect(read(request(lines))).toBe(`target a: ${body}`);
    expect(reader.isLast).toBe(false);
  });
});

describe("a request that is answered by its head", () => {
  it.each(["GET /x HTTP/1.1", "HEAD /a?b=%20#c HTTP/1.1", "PROPFIND /a HTTP/1.1", "POST /x HTTP/1.1"])(
    "is read with its method and its address: %s",
    (line) => {
      const whole = request(["host: a"], line);
      expect(read(whole)).toBe("page: ");
      expect(`${reader.method} ${reader.url} HTTP/1.1`).toBe(line);
      expect(reader.end).toBe(whole.length - body.length);
    },
  );

  it("may have a body that is there, and headers that matter only to calls", () => {
    const headers = ["Host: a", "Content-Type: text/plain", "Content-Encoding: gzip", "Origin: a", length];
    expect(read(request(headers, "POST /x HTTP/1.1"))).toBe(`page: ${body}`);
    expect(read(request(headers, "POST /x HTTP/1.1").slice(0, -1))).toBe("node_body");
    expect(read(request(headers, "GET /x HTTP/1.1"))).toBe("node_body");
    expect(readerWith(false).read(Buffer.from(request(headers, "PUT /x HTTP/1.1")), 0)).toBe("supported");
  });

  it("has its headers as Node has them", () => {
    const more = ["Accept:\ta b\t ", "X: 1", "x:2", "Cookie: a", "cookie: b", "Authorization: c", "authorization: d"];
    const bytes = Buffer.from(request(["Host: a:1", ...more, "Set-Cookie: s", "__proto__: p"], "GET /x HTTP/1.1"));
    expect(reader.read(bytes, 0)).toBe("supported");
    expect(Object.entries(reader.headers(bytes))).toEqual([
      ["host", "a:1"],
      ["accept", "a b"],
      ["x", "1, 2"],
      ["cookie", "a; b"],
      ["authorization", "c"],
      ["set-cookie", ["s"]],
      ["__proto__", "p"],
    ]);
  });
});

describe("a request is incomplete", () => {
  it.each(["POST /a HTTP/1.1", "POST /ab HTTP/1.1", "GET /other?x HTTP/1.1"])(
    "as long as a byte of %s is missing, or of its head, and its end is known once its head is there",
    (line) => {
      const isPage = line.startsWith("GET");
      const headers = isPage ? lines.slice(0, 2) : lines;
      const whole = isPage ? request(headers, line).slice(0, -body.length) : request(headers, line);
      for (let end = 1; end < whole.length; end++) {
        expect(find(whole.slice(0, end)), `${end}`).toBe("incomplete");
        expect(reader.hasHead).toBe(!isPage && end >= whole.length - body.length);
        if (reader.hasHead) expect(reader.end).toBe(whole.length);
      }
      expect(find(whole)).toBe("supported");
    },
  );

  it.each(["G", "POST", "PO", "OPTIONS ", "POST /v"])("after %j, and unknown after another byte", (text) => {
    expect(find(text)).toBe("incomplete");
    expect(find(`${text}\x01`)).toBe("node_framing");
  });

  it("no longer than a head may be", () => {
    expect(find(`GET /${"a".repeat(8000)}`)).toBe("incomplete");
    expect(find(`GET /${"a".repeat(9000)}`)).toBe("node_head");
    expect(find(`POST /a HTTP/1.1\r\nx-long: ${"l".repeat(9000)}`)).toBe("node_head");
    expect(find("A".repeat(40))).toBe("node_framing");
  });
});

describe("a request goes to Node because of a header", () => {
  it.each(lines.slice(0, 2))("without or with two of %s", (line) => {
    expect(read(request(lines.filter((each) => each !== line)))).toBe("node_head");
    expect(read(request([...lines, line]))).toBe("node_head");
  });

  it.each([
    "Content-Encoding: identity",
    "Trailer: a",
    "Connection: keep-alive, close",
    "Connection: close ",
    "Connection: x",
    "Connection:",
    "Proxy-Connection: keep-alive",
    "Proxy-Connection: close",
    `x-long: ${"l".repeat(9000)}`,
  ])("with %j", (line) => {
    expect(read(request([...lines, line]))).toBe("node_head");
    expect(read(request([line, ...lines]))).toBe("node_head");
  });

  it.each(["text/plain", "application/json; charset=latin1", "application/jsonx", ""])("for the type %j", (type) => {
    expect(read(request(lines.with(1, `Content-Type: ${type}`)))).toBe("node_head");
  });

  it("where the answer depends on the origin", () => {
    const withOrigin = Buffer.from(request([...lines, "Origin: https://example.org"]));
    expect(readerWith(false).read(withOrigin, 0)).toBe("node_head");
    expect(readerWith(false).read(Buffer.from(request(lines)), 0)).toBe("supported");
  });

  it("without a length", () => {
    expect(read(request(lines.slice(0, 2)))).toBe("node_head");
  });
});

it("a request goes to Node because of its path", () => {
  expect(read("POST /node HTTP/1.1\r\n")).toBe("node_path");
});

it.each(["65537", "99999"])("a request goes to Node because its body is longer than a body may be: %s", (text) => {
  expect(read(request(lines.with(2, `Content-Length: ${text}`)))).toBe("node_body");
});

describe("a request is left to Node, which finds its end", () => {
  it("without an end of its head", () => {
    const whole = request(lines);
    expect(read(whole.replace("\r\n\r\n", "\r\n\rx"))).toBe("node_framing");
    expect(read(whole.replace("\r\n\r\n", "\r\n\n\n"))).toBe("node_framing");
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
  ])("with %j", (line) => {
    for (const requestLine of ["POST /a HTTP/1.1", "PUT /x HTTP/1.1"]) {
      expect(read(request([...lines, line], requestLine))).toBe("node_framing");
      expect(read(request([line, ...lines], requestLine))).toBe("node_framing");
    }
  });

  it.each(["011", "+11", "-11", "11 ", "1e1", "0xb", "11,11", "100000", ""])("for the length %j", (text) => {
    expect(read(request(lines.with(2, `Content-Length: ${text}`)))).toBe("node_framing");
  });

  it.each([
    "POST  /a HTTP/1.1",
    "POST /a HTTP/1.0",
    "POST /a HTTP/1.1 ",
    "CONNECT a:80 HTTP/1.1",
    "CONNECT /a HTTP/1.1",
    "post /a HTTP/1.1",
    "FOO /a HTTP/1.1",
    "GET a HTTP/1.1",
    "GET http://a/a HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "\r\nPOST /a HTTP/1.1",
    " POST /a HTTP/1.1",
    "POST /\xe9 HTTP/1.1",
  ])("for %j", (line) => {
    expect(read(request(lines, line))).toBe("node_framing");
  });
});
