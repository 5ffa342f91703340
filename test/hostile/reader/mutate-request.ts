import type { SeededRandom } from "../../domain/seeded-random.ts";

const bytesMax = 20_000;

/** One to four changes, most of them small: every reader refuses what is far from a good request. */
export function mutateRequest(request: Buffer, others: readonly Buffer[], random: SeededRandom): Buffer {
  let text = request.toString("latin1");
  for (let changes = random.integer(1, random.pick([1, 2, 4])); changes > 0; changes--) {
    const mutation = random.pick(random.chance(0.5) ? byteMutations : lineMutations);
    text = mutation(text, random, others);
  }
  return Buffer.from(text.slice(0, bytesMax), "latin1");
}

type Mutation = (text: string, random: SeededRandom, others: readonly Buffer[]) => string;

const tokens = [
  "\r\n",
  "\n",
  "\r",
  "\r\r\n",
  "\n\r",
  "\r\n\r\n",
  "\r\n ",
  "\r\n\t",
  "\0",
  "\x7f",
  "\x80",
  "\xe9",
  "\xff",
  "\x0b",
  "\x0c",
  " ",
  "\t",
  ":",
  ",",
  ";",
  "0",
  "chunked",
  "close",
  "keep-alive",
  "identity",
  "HTTP/1.1",
  "0\r\n\r\n",
  "POST ",
];

const byteMutations: readonly Mutation[] = [
  (text, random) => splice(text, place(text, random), 1, byte(random.integer(0, 255))),
  (text, random) => {
    const at = place(text, random);
    return splice(text, at, 1, byte(text.charCodeAt(at) ^ (1 << random.integer(0, 7))));
  },
  (text, random) => splice(text, place(text, random), 0, random.pick(tokens)),
  (text, random) => splice(text, place(text, random), random.integer(1, 8), ""),
  (text, random) => {
    const at = place(text, random);
    return splice(text, at, 0, text.slice(at, at + random.integer(1, 40)));
  },
  (text, random) => text.slice(0, place(text, random)),
  (text, random, others) => text + random.pick(others).toString("latin1"),
  (text, random, others) => random.pick(others).toString("latin1") + text,
  (text, random, others) => {
    const other = random.pick(others).toString("latin1");
    return text.slice(0, place(text, random)) + other.slice(place(other, random));
  },
  (text, random) => random.pick(["\r\n", "\n", "\r", " ", "\0", "\r\n\r\n"]) + text,
];

const addedLines = [
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding : chunked",
  "transfer-encoding:\tchunked",
  "Transfer_Encoding: chunked",
  "Content-Length: 1",
  "Content-Length:",
  "content-length : 14",
  "Connection: close",
  "Connection: keep-alive",
  "Connection: keep-alive, close",
  "Connection: upgrade",
  "Connection: x",
  "Proxy-Connection: close",
  "Proxy-Connection: keep-alive",
  "Keep-Alive: timeout=1",
  "Upgrade: h2c",
  "Upgrade: websocket",
  "Expect: 100-continue",
  "Trailer: x",
  "TE: trailers",
  "Content-Encoding: gzip",
  "Content-Type: text/plain",
  "Host: b",
  "HTTP2-Settings: AAMAAABk",
  "X-Empty:",
  "X-Long: ".padEnd(9000, "x"),
  "X-Long: ".padEnd(17_000, "x"),
  " folded",
  "\tfolded",
  "nameless",
  ": nameless",
  "X Space: a",
  'X-Quoted: "a\\',
  "X-Latin: \xe9",
  "X-Nul: \0",
];

const lengths = ["0", "00", "1", "13", "15", "99999", "65536", "65537", "014", "+14", "-14", "14 ", " 14", "1 4"];
const moreLengths = ["0xe", "14,14", "14, 14", "1e1", "14\t", "14\r", "18446744073709551616", "4294967310", ""];
const requestLines = [
  "POST /v1/keys.verifyKey HTTP/1.0",
  "POST /v1/keys.verifyKey HTTP/1.2",
  "POST /v1/keys.verifyKey HTTP/2.0",
  "POST /v1/keys.verifyKey HTTP/1.1 ",
  "POST /v1/keys.verifyKey\tHTTP/1.1",
  "POST  /v1/keys.verifyKey HTTP/1.1",
  "POST /v1/keys.verifyKey",
  "POST http://a/v1/keys.verifyKey HTTP/1.1",
  "post /v1/keys.verifyKey HTTP/1.1",
  "GET /v1/keys.verifyKey HTTP/1.1",
  "GET /v1/authz?apiId=a HTTP/1.1",
  "HEAD /livez HTTP/1.1",
  "DELETE /v1/authz HTTP/1.1",
  "M-SEARCH /v1/authz HTTP/1.1",
  "SOURCE /livez HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "GET /a#b?c HTTP/1.1",
  'GET /"<>\\^`{|} HTTP/1.1',
  "CONNECT /v1/keys.verifyKey HTTP/1.1",
  "PRI * HTTP/2.0",
];

const lineMutations: readonly Mutation[] = [
  // A line twice, away, moved, in other letters, added.
  onLines((lines, at) => lines.splice(at, 0, lines[at] as string)),
  onLines((lines, at, random) => lines.splice(random.integer(1, lines.length), 0, lines[at] as string)),
  onLines((lines, at) => lines.splice(at, 1)),
  onLines((lines, at, random) => lines.splice(random.integer(1, lines.length), 0, ...lines.splice(at, 1))),
  onLines((lines, at) => lines.splice(at, 1, (lines[at] as string).toUpperCase())),
  onLines((lines, at) => lines.splice(at, 1, (lines[at] as string).toLowerCase())),
  onLines((lines, at, random) => lines.splice(at, 0, random.pick(addedLines))),
  onLines((lines, _, random) => lines.push(random.pick(addedLines))),
  onLines((lines, _, random) => lines.splice(0, 1, random.pick(requestLines))),
  // White space and folds.
  onLines((lines, at, random) => respell(lines, at, (name, value) => `${name}${random.pick([" ", "\t"])}:${value}`)),
  onLines((lines, at, random) =>
    respell(lines, at, (name, value) => `${name}:${random.pick(["", "  ", "\t", " \t "])}${value.trim()}`),
  ),
  onLines((lines, at, random) =>
    respell(lines, at, (name, value) => `${name}:${value}${random.pick([" ", "\t", "  ", "\r"])}`),
  ),
  onLines((lines, at, random) =>
    respell(lines, at, (name, value) => `${name}:${random.pick(["\r\n ", "\r\n\t", "\n ", "\r "])}${value}`),
  ),
  // Lengths, and chunks in place of one.
  (text, random) => {
    const length = random.pick(random.chance(0.6) ? lengths : moreLengths);
    return text.replace(/(content-length: ?)\d+/i, `$1${length}`);
  },
  (text, random) =>
    text.replace(/(content-length: ?)(\d+)/i, (_, name, digits) => name + (Number(digits) + random.integer(-2, 2))),
  (text) => text.replace(/content-length: ?\d+/i, "Transfer-Encoding: chunked").replace(/(?<=\r\n\r\n).*/s, toChunks),
  (text) => text.replace(/(?=content-length)/i, "Transfer-Encoding: chunked\r\n").replace(/(?<=\r\n\r\n).*/s, toChunks),
  // Ends of lines: of all, or of one.
  (text, random) => text.replaceAll("\r\n", random.pick(["\n", "\r", "\r\r\n", "\n\r"])),
  (text, random) => {
    const ends = [...text.matchAll(/\r\n/g)];
    return ends.length === 0
      ? text
      : splice(text, random.pick(ends).index, 2, random.pick(["\n", "\r", "\r\r\n", "\n\r", "\r\n ", ""]));
  },
];

/** A change of the head's lines; the request line is the first of them. */
function onLines(change: (lines: string[], at: number, random: SeededRandom) => unknown): Mutation {
  return (text, random) => {
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return text;
    const lines = text.slice(0, end).split("\r\n");
    change(lines, random.integer(Math.min(1, lines.length - 1), lines.length - 1), random);
    return lines.join("\r\n") + text.slice(end);
  };
}

function respell(lines: string[], at: number, spell: (name: string, value: string) => string): void {
  const line = lines[at] as string;
  const colon = line.indexOf(":");
  if (colon !== -1) lines[at] = spell(line.slice(0, colon), line.slice(colon + 1));
}

function toChunks(body: string): string {
  return `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
}

function place(text: string, random: SeededRandom): number {
  return random.integer(0, Math.max(0, text.length - 1));
}

function splice(text: string, at: number, removed: number, added: string): string {
  return text.slice(0, at) + added + text.slice(at + removed);
}

function byte(code: number): string {
  return String.fromCharCode(code & 255);
}
