import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { routes } from "../../../gen/latchkey/v1/services.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { type ReaderTarget, RequestReader } from "../../../src/rpc/fast-path/request-reader.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { readWithOurs } from "../../hostile/reader/our-reader.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { makeCertificate } from "../../support/make-certificate.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { grpcCorpus } from "./grpc-corpus.ts";
import { headCorpus } from "./head-corpus.ts";
import { jsonCorpus } from "./json-corpus.ts";
import { managingCorpus } from "./managing-corpus.ts";
import { pageCorpus } from "./page-corpus.ts";
import { connectRaw, type RawRequest } from "./raw-exchange.ts";
import { startTwins, type TwinServers } from "./twin-servers.ts";

/* The reference path and the fast path are asked the same, and must say the same. LATCHKEY_FUZZ_SEED replays a run. */

const seed = Number(process.env.LATCHKEY_FUZZ_SEED ?? Date.now() % 2 ** 32);
const fuzzed = sized(100, 600);
/** One request of so many is sent, another one with each seed. */
const oneOf = sized(2, 1);
const oneOfOverTls = sized(8, 1);
const together = 24;
const own = makeCertificate(tempFolder(afterAll), "port");
const ca = readFileSync(own.certificate, "utf8");
const corpora = { JSON: jsonCorpus, gRPC: grpcCorpus, "by hand": headCorpus, page: pageCorpus };

describe("the fast path answers as the reference does", () => {
  if (!isDeep) {
    it("in a corpus of 2000 requests, of which it takes a good part itself", async () => {
      const { secrets } = await startTwins();
      const corpus = Object.values(corpora).flatMap((make) => make(secrets));

      expect(corpus.length).toBeGreaterThanOrEqual(2000);
      expect(new Set(corpus.map(fingerprint)).size).toBeGreaterThanOrEqual(1700);
      expect(corpus.filter(isTaken).filter(({ over }) => over === "HTTP/1.1").length).toBeGreaterThanOrEqual(150);
      expect(corpus.filter(isTaken).filter(({ over }) => over === "HTTP/2").length).toBeGreaterThanOrEqual(150);
      expect(corpus.filter(isTaken).filter(({ over }) => over === "bytes").length).toBeGreaterThanOrEqual(75);
    });

    it("to every call that needs a root key, and takes most of them itself", async () => {
      const twins = await startTwins();
      const corpus = managingCorpus(twins.secrets);
      await expectSame(twins, corpus);
      expect(await twins.readByHand()).toBeGreaterThan(corpus.length * 0.7);
    });
  }

  it.each(["JSON", "gRPC", "by hand", "page"] as const)(
    `to every ${sized("second ", "")}%s request of the corpus, and accounts for it alike, with seed ${seed}`,
    async (protocol) => {
      const twins = await startTwins();
      await expectSame(twins, some(corpora[protocol](twins.secrets), oneOf));
    },
  );

  it.each(["JSON", "gRPC", "by hand", "page"] as const)(
    `to %s requests changed at random, with seed ${seed}`,
    async (protocol) => {
      const twins = await startTwins();
      const corpus = corpora[protocol](twins.secrets);
      const random = new SeededRandom(seed + protocol.length);
      await expectSame(
        twins,
        Array.from({ length: fuzzed }, () => mutate(random.pick(corpus), corpus, random)).filter(isDecidable),
      );
    },
  );
});

describe("the fast path over TLS answers as the reference does in cleartext", () => {
  it.each(["JSON", "gRPC", "by hand", "page"] as const)(
    `to every ${sized("eighth ", "")}%s request of the corpus, with seed ${seed}`,
    async (protocol) => {
      const twins = await startTwins({ fastTls: { certPem: ca, keyPem: new Secret(readFileSync(own.key, "utf8")) } });
      await expectSame(twins, some(corpora[protocol](twins.secrets), oneOfOverTls), ca);
      if (protocol !== "gRPC") expect(await twins.readByHand()).toBeGreaterThan(100 / oneOfOverTls);
    },
  );
});

describe("the comparison notices a reader that", () => {
  const { headers, read } = RequestReader.prototype;

  it.each<[string, Partial<Reader> & ThisType<Reader>]>([
    [
      "takes the last of two headers",
      {
        headers(bytes) {
          const [, last] = /.*\r\nauthorization: *([^\r]*)\r\n/is.exec(bytes.toString("latin1")) ?? [];
          return { ...headers.call(this, bytes), authorization: last };
        },
      },
    ],
    [
      "overlooks the query",
      {
        read(bytes, start) {
          const found = read.call(this, bytes, start);
          this.url = this.url.replace(/\?.*/, "");
          return found;
        },
      },
    ],
    [
      "overlooks that a request is the last",
      {
        read(bytes, start) {
          const found = read.call(this, bytes, start);
          this.isLast = false;
          return found;
        },
      },
    ],
    [
      "takes HEAD for GET",
      {
        read(bytes, start) {
          const found = read.call(this, bytes, start);
          if (this.method === "HEAD") this.method = "GET";
          return found;
        },
      },
    ],
  ])("%s", async (_, broken) => {
    Object.assign(RequestReader.prototype, broken);
    onTestFinished(() => void Object.assign(RequestReader.prototype, { headers, read }));
    const twins = await startTwins();
    await expect(expectSame(twins, pageCorpus(twins.secrets))).rejects.toThrow();
  });
});

/**
 * Of a path that is not there, Node reads as much of a chunked body as has arrived when it answers 404: whether it finds the
 * body to be wrong, and answers 400, is a matter of chance.
 */
function isDecidable({ over, chunks }: RawRequest): boolean {
  const text = Buffer.concat(chunks).toString("latin1");
  const [, path] = /^\S+ (\S+) /.exec(text) ?? [];
  return over !== "bytes" || !/transfer-encoding/i.test(text) || routes.some((route) => route.path === path);
}

function some(requests: readonly RawRequest[], oneIn: number): readonly RawRequest[] {
  return requests.filter((_, index) => index % oneIn === seed % oneIn);
}

async function expectSame(twins: TwinServers, requests: readonly RawRequest[], ca?: string): Promise<void> {
  const [reference, fast] = [connectRaw({ port: twins.ports[0] }), connectRaw({ port: twins.ports[1], ca })];
  for (const group of inGroups(requests, twins)) {
    const sendAll = ({ send }: Client) => Promise.all(group.map(send));
    const [expected, heard] = await Promise.all([sendAll(reference), sendAll(fast)]);
    for (const [index, request] of group.entries()) {
      // Node drops bytes behind an upgrade, so only the fast path can keep such a connection.
      if (isDeepStrictEqual(heard[index], expected[index]) || asksForUpgrade(request)) continue;
      expect(heard[index], printed(request)).toEqual(expected[index]);
    }
  }
  const [expected, accounted] = await twins.accounts();
  expect(accounted.metrics).toEqual(expected.metrics);
  expect(accounted.log).toEqual(expected.log);
  // A caller's request id can be found in the log.
  expect(expected.ids.filter((id) => !reference.heardIds.has(id))).toEqual([]);
  expect(accounted.ids.filter((id) => !fast.heardIds.has(id))).toEqual([]);
}

/** Requests without side effects are sent together, for speed. Others are sent one by one. */
function inGroups(requests: readonly RawRequest[], { lastingSecrets }: TwinServers): RawRequest[][] {
  const groups: RawRequest[][] = [[]];
  for (const request of requests) {
    const text = Buffer.concat(request.chunks).toString("latin1");
    const isAlone =
      request.name.startsWith("managing") || lastingSecrets.some((secret) => text.includes(secret.slice(1)));
    if (isAlone) groups.push([request], []);
    else if (groups.at(-1)?.push(request) === together) groups.push([]);
  }
  return groups;
}

type Reader = RequestReader<ReaderTarget>;

type Client = ReturnType<typeof connectRaw>;

function asksForUpgrade({ headers = {}, chunks }: RawRequest): boolean {
  return "upgrade" in headers || /^upgrade:/im.test(Buffer.concat(chunks).toString("latin1"));
}

/** Whether the codec of its protocol understands the body; of bytes, whether they are a plain request. */
function isTaken({ over, chunks }: RawRequest): boolean {
  const [codec] = hotMethods;
  const body = Buffer.concat(chunks);
  if (codec === undefined) return false;
  if (over === "bytes") return readWithOurs(body, 0).status === "taken";
  return (over === "HTTP/1.1" ? codec.decodeJson(body, 0, body.length) : codec.decodeBinary(body, 5)) !== undefined;
}

function fingerprint({ over, method, path, headers, chunks }: RawRequest): string {
  return JSON.stringify({ over, method, path, headers, chunks: chunks.map((chunk) => chunk.toString("base64")) });
}

function printed(request: RawRequest): string {
  return `${request.name} ${fingerprint(request).slice(0, 2000)}`;
}

const tokens = [
  '"',
  "\\",
  "{",
  "}",
  ":",
  ",",
  "null",
  "\\u0000",
  "\0",
  "\xc3\xa9",
  "\xff",
  "\x0a",
  "\x12\x01a",
  "\x80",
];

/** A few bytes of the body are changed, left out, repeated, or taken from another request. */
function mutate(request: RawRequest, corpus: readonly RawRequest[], random: SeededRandom): RawRequest {
  // The request that ends the connection is read by hand.
  const [whole, rest] =
    request.over === "bytes"
      ? [request.chunks[0] as Buffer, request.chunks.slice(1)]
      : [Buffer.concat(request.chunks), []];
  let body = whole.subarray(0, 20_000);
  for (let changes = random.integer(0, 2); changes >= 0; changes--) {
    const at = random.integer(0, body.length);
    const until = at + random.integer(0, 8);
    const other = Buffer.concat(random.pick(corpus).chunks).subarray(0, 20_000);
    const change = random.pick([
      () => [body.subarray(0, at), Buffer.of(random.integer(0, 255)), body.subarray(at + 1)],
      () => [body.subarray(0, at), Buffer.of((body[at] ?? 0) ^ (1 << random.integer(0, 7))), body.subarray(at + 1)],
      () => [body.subarray(0, at), body.subarray(until)],
      () => [body.subarray(0, until), body.subarray(at)],
      () => [body.subarray(0, at), Buffer.from(random.pick(tokens), "latin1"), body.subarray(at)],
      () => [body.subarray(0, at)],
      () => [body.subarray(0, at), other.subarray(random.integer(0, other.length))],
    ]);
    body = Buffer.concat(change());
  }
  // Most mutants of a frame would fail by its length alone.
  if (request.over === "HTTP/2" && body.length >= 5 && random.chance(0.7)) body.writeUInt32BE(body.length - 5, 1);
  const { "content-length": length, ...headers } = request.headers ?? {};
  const right = length === undefined ? {} : { "content-length": `${body.length}` };
  return {
    ...request,
    name: `a mutant of ${request.name}`,
    headers: { ...right, ...headers },
    chunks: [body, ...rest],
  };
}
