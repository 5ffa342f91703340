import { describe, expect, it } from "vitest";
import { connectWire, type HttpAnswer } from "../rpc/exchange.ts";
import { type CallName, encode, keyIdCalls, type Protocol, protocols } from "../rpc/protocols.ts";
import { sized } from "../support/deep.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { endStream, frame, frameType, headerBlock, hello, openRequest, verifyHeaders } from "./hostile/http2-frames.ts";
import { RawSocket } from "./hostile/raw-socket.ts";

/* Good requests with something changed at random. LATCHKEY_FUZZ_SEED replays a run. */

const seed = Number(process.env.LATCHKEY_FUZZ_SEED ?? Date.now() % 2 ** 32);
const perProtocolAndCall = sized(10, 100);
const rawConnections = sized(100, 400);

const goodBodies: Partial<Record<CallName, object>> = {
  createKey: {
    apiId: "api",
    prefix: "live",
    byteLength: 24,
    ownerId: "owner",
    remaining: 5,
    refill: { interval: "daily", amount: 5, carryOver: true },
    name: "naïve 😀",
    meta: { a: [1, -2.5e3, true, null, { b: "text" }] },
    expires: 4102444800000,
    enabled: true,
  },
  verifyKey: { key: "live_0123456789abcdefghijklmnopqrstuvwxyz", apiId: "api" },
  createOwner: {
    ownerId: "owner",
    meta: { a: [1, "text"] },
    enabled: true,
    apiIds: ["api", "another"],
    remaining: 5,
    refill: { interval: "daily", amount: 5, carryOver: true },
    ratelimits: [{ name: "minute", limit: 5, duration: 60000 }],
  },
  ...Object.fromEntries(keyIdCalls.map((call) => [call, { keyId: "key_0123456789abcdefghij" }])),
};

describe(`with seed ${seed}`, () => {
  it("a request with a changed body or header is never answered as a fault of ours", async () => {
    const random = createRandom(seed);
    const server = await startTestServer();
    const wire = connectWire(server.port);
    let sent = 0;
    for (const protocol of protocols) {
      for (const call of Object.keys(goodBodies) as CallName[]) {
        const good = encode(protocol, call, goodBodies[call] as never);
        for (let round = 0; round < perProtocolAndCall; round++) {
          const headers = {
            "content-type": protocol.contentType,
            authorization: `Bearer ${server.rootKey}`,
            ...(random(4) === 0 && changedHeader(random)),
          };
          const body = random(8) === 0 ? good : mutate(good, random);
          const request = { method: "POST", path: protocol.pathOf(call), headers, body };
          const answer = await (protocol.http === 1 ? wire.over1 : wire.over2)(request);
          expect(failureOf(protocol, answer), `${protocol.name} ${call} ${Buffer.from(body).toString("base64")}`).toBe(
            "",
          );
          sent++;
        }
      }
    }
    expect(sent).toBeGreaterThanOrEqual(24 * perProtocolAndCall);
    await expectUnharmed(server);
  });

  it.each(["HTTP/1.1", "HTTP/2"])("bytes of %s changed anywhere never get an answer of 5xx", async (version) => {
    const random = createRandom(seed + version.length);
    const server = await startTestServer();
    const good = version === "HTTP/2" ? over2(server) : over1(server);
    for (let sent = 0; sent < rawConnections; sent += 50) {
      const tries = Array.from({ length: 50 }, () => mutate(good, random));
      const answers = tries.map(async (bytes) => {
        const socket = new RawSocket(server.port).say(bytes);
        await Promise.race([socket.closed, new Promise((resolve) => setTimeout(resolve, 100))]);
        socket.hangUp();
        return socket.heard.toString("latin1");
      });
      for (const [index, heard] of (await Promise.all(answers)).entries()) {
        expect(
          /HTTP\/1\.1 5\d\d|INTERNAL_SERVER|UNAVAILABLE/.exec(heard)?.[0],
          tries[index]?.toString(),
        ).toBeUndefined();
      }
    }
    await expectUnharmed(server);
  });
});

type Random = (below: number) => number;

/** mulberry32. */
function createRandom(start: number): Random {
  let state = start >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const tokens = [
  "null",
  "-1",
  "1e999",
  '"',
  "{",
  "]",
  "\\u0000",
  "\\ud800",
  "__proto__",
  "\r\n",
  "\0",
  "\xff\xff\xff\xff\x0f",
  ": ",
];

function mutate(good: Uint8Array, random: Random): Buffer {
  let bytes = Buffer.from(good);
  for (let changes = 1 + random(3); changes > 0; changes--) {
    const at = random(bytes.length + 1);
    const until = at + random(8);
    const token = Buffer.from(tokens[random(tokens.length)] ?? "", "latin1");
    const changed = [
      () => Buffer.concat([bytes.subarray(0, at), Buffer.of(random(256)), bytes.subarray(at + 1)]),
      () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(until)]),
      () => Buffer.concat([bytes.subarray(0, until), bytes.subarray(at)]),
      () => Buffer.concat([bytes.subarray(0, at), token, bytes.subarray(at)]),
      () => bytes.subarray(0, at),
    ][random(5)];
    bytes = Buffer.from(changed?.() ?? bytes);
  }
  return bytes;
}

const headerNames = [
  "authorization",
  "content-type",
  "content-encoding",
  "idempotency-key",
  "grpc-timeout",
  "grpc-encoding",
  "connect-timeout-ms",
  "expect",
  "x-anything",
];

function changedHeader(random: Random): Record<string, string> {
  const value = Array.from({ length: random(20) }, () => String.fromCharCode(0x20 + random(0x5f))).join("");
  return { [headerNames[random(headerNames.length)] ?? ""]: value.trim() };
}

/** What is wrong with the answer. Undefined if it is a success or a client error. */
function failureOf(protocol: Protocol, answer: HttpAnswer): string {
  // Connect's own status for what is not implemented, such as compression.
  if (answer.status >= 500 && answer.status !== 501) return `status ${answer.status}`;
  if (answer.headers.get("content-type") === "application/json" && answer.status !== 200) return "";
  const code = protocol.readError(answer)?.code ?? "";
  return /INTERNAL|UNAVAILABLE/.test(code) ? code : "";
}

function over1({ rootKey }: TestServer): Buffer {
  const body = JSON.stringify(goodBodies.createKey);
  const lines = [
    "POST /v1/keys.createKey HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${rootKey}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

function over2({ rootKey }: TestServer): Buffer {
  const headers = [
    ...verifyHeaders.filter(([name]) => name !== ":path"),
    [":path", "/v1/keys.createKey"],
    ["authorization", `Bearer ${rootKey}`],
  ] as const;
  const pseudoFirst = headers.toSorted(([a], [b]) => Number(b.startsWith(":")) - Number(a.startsWith(":")));
  const body = Buffer.from(JSON.stringify(goodBodies.createKey));
  const trailers = frame(frameType.headers, 0x4 | endStream, 1, headerBlock([["x-end", "yes"]]));
  return Buffer.concat([hello(), openRequest(1, pseudoFirst), frame(frameType.data, 0, 1, body), trailers]);
}

async function expectUnharmed({ baseUrl, logLines }: TestServer): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${baseUrl}/v1/keys.verifyKey`, { method: "POST", headers, body: '{"key":"x"}' });
  expect(answer.status).toBe(200);
  // A root key may have been changed, too.
  const warnings = logLines.filter((line) => /"level":"(error|warn)"/.test(line));
  const expected = /"msg":"(a root key was refused|the store was empty: a new one was created)"/;
  expect(warnings.filter((line) => !expected.test(line))).toEqual([]);
}
