import http from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { onTestFinished } from "vitest";
import { sha256 } from "../../../src/ambient/crypto.ts";
import type { NewKey } from "../../../src/domain/key.ts";
import { formatKey } from "../../../src/domain/key-format.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { Coordinator } from "../../../src/ratelimit/coordinator/coordinator.ts";
import { limiterByMode } from "../../../src/ratelimit/limiter.ts";
import { StrictLimiter } from "../../../src/ratelimit/strict/strict-limiter.ts";
import { malformedResponse } from "../../../src/rpc/http1-response.ts";
import type { RequestListener } from "../../../src/rpc/request-listener.ts";
import { defaultTimeouts } from "../../../src/server/port/connections.ts";
import type { ServingSettings } from "../../../src/server/public-api.ts";
import { CachedKeyLookup } from "../../../src/store/cached-key-lookup.ts";
import type { KeyLookup } from "../../../src/store/key-lookup.ts";
import type { UsageLedger } from "../../../src/store/usage-ledger.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { type ApiParts, composePublicApi } from "../../support/compose-public-api.ts";
import { createKey } from "../../support/manage.ts";
import { TestClock } from "../../support/test-clock.ts";

const far = 4_102_444_800_000;
const nested = { list: [1, -2.5e-7, 1e21, 0, true, null, { deep: { deeper: [[], {}, ""] } }], 10: "ten", 2: "two" };
const unicode = { "naïve 😀": "\u2028\u2029\u007f é 漢字", quote: '"\\/\b\f\n\r\t', "": "empty" };
const long = "x".repeat(16_000);

/** Every kind of key, by its special property. */
const kinds: Readonly<Record<string, Partial<NewKey>>> = {
  plain: {},
  disabled: { enabled: false, name: "off" },
  expired: { expiresAtMs: 1 },
  expiring: { expiresAtMs: far },
  counted: { remaining: 100_000 },
  few: { remaining: 3 },
  exhausted: { remaining: 0 },
  local: { rateLimit: { mode: "local", limit: 100_000, durationMs: 60_000 } },
  localFew: { rateLimit: { mode: "local", limit: 3, durationMs: 60_000 } },
  localDisabled: { enabled: false, rateLimit: { mode: "local", limit: 3, durationMs: 60_000 } },
  strict: { rateLimit: { mode: "strict", limit: 100_000, durationMs: 60_000 } },
  strictFew: { rateLimit: { mode: "strict", limit: 3, durationMs: 60_000 } },
  limitedAndCounted: { remaining: 5, rateLimit: { mode: "local", limit: 10, durationMs: 60_000 } },
  nestedMeta: { meta: nested },
  unicodeMeta: { meta: unicode, name: "naïve 😀\u2028", ownerId: '"\\' },
  longMeta: { meta: { long } },
  longTexts: { name: "é".repeat(255), ownerId: "o".repeat(255) },
  // Each with nothing else in it that would have to be written by the long way.
  latin: { name: "né", ownerId: "back\\slash" },
  control: { name: "a\tb", ownerId: "\u007f" },
  quoted: { name: 'say "a"', ownerId: "" },
  text127: { name: "n".repeat(127), ownerId: "o".repeat(128) },
  permitted: { permissions: ["docs.*", "admin"] },
  fromSome: { ipAllow: ["10.0.0.0/8", "2001:db8::/32"], remaining: 100_000 },
  permittedFromSome: {
    permissions: ["*"],
    ipAllow: ["::/0"],
    rateLimit: { mode: "local", limit: 9, durationMs: 60_000 },
  },
  everything: {
    permissions: ["docs.read", "docs.write"],
    name: "name",
    ownerId: "owner",
    meta: { a: 1 },
    expiresAtMs: far,
    remaining: 2_147_483_647,
    rateLimit: { mode: "local", limit: 2_147_483_647, durationMs: 2_592_000_000 },
  },
};
/** Those that the store, or the ledger, fails on. */
const failing = ["unavailable", "broken", "uncountable"] as const;

export interface TwinServers {
  /** The port of the reference path alone, and of the one with thin handlers. */
  readonly ports: readonly [number, number];
  /** The port of a server of Node's alone, with the listener of the reference path. */
  readonly barePort: number;
  /** Secrets by the kind of their key; among them some that no key has. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Those of keys that a verification changes. */
  readonly lastingSecrets: readonly string[];
  /** How many requests of HTTP/1.1 the one with thin handlers has read by hand. */
  readonly readByHand: () => Promise<number>;
  /** The metrics and log lines of both, without ids and without the order of lines. */
  readonly accounts: () => Promise<readonly [Account, Account]>;
}

export interface Account {
  readonly metrics: readonly string[];
  readonly log: readonly string[];
  /**
   * The ids of calls that the log tells. What was refused before it became one is left out: bytes behind a request are another
   * one, whose answer its client does not read.
   */
  readonly ids: readonly string[];
}

/**
 * Two servers that differ only in the fast path, which may be served over TLS, with one clock that stands still. Each has its own store with
 * the same keys: on a shared store, one would use up the counters of the other, and answers would differ.
 */
export async function startTwins({ fastTls }: { fastTls?: ServingSettings["tls"] } = {}): Promise<TwinServers> {
  const clock = new TestClock();
  const secrets: Record<string, string> = {};
  const keys = [...Object.keys(kinds), ...failing].map((kind, index) => {
    const secret = formatKey(index % 2 ? "live" : undefined, Buffer.alloc(24, index + 1)).key;
    secrets[kind] = secret;
    const remaining = kind === "uncountable" ? { remaining: 5 } : {};
    const given = { id: `key_of_${kind}`, secretDigest: sha256(secret), ...remaining, ...kinds[kind] };
    return sampleKey(clock, given);
  });
  secrets.unknown = formatKey("live", Buffer.alloc(24, 200)).key;
  secrets.longest = formatKey("Acme_Live_16chrs", Buffer.alloc(255, 201)).key;
  secrets.garbage = "not a key at all";
  secrets.typo = `${secrets.plain?.slice(0, -1)}~`;

  const twins = await Promise.all(
    [false, true].map((fastPath) => startOne(fastPath, clock, keys, fastPath ? fastTls : undefined)),
  );
  const bare = await startOne(false, clock, keys);
  const accounts = () => Promise.all(twins.map(({ account }) => account()));
  return {
    ports: twins.map(({ port }) => port) as unknown as TwinServers["ports"],
    barePort: bare.barePort,
    readByHand: async () => (await twins[1]?.readByHand()) ?? 0,
    secrets,
    lastingSecrets: keys
      .filter(({ remaining, rateLimit }) => remaining !== undefined || rateLimit !== undefined)
      .map(({ id }) => secrets[id.slice("key_of_".length)] as string),
    accounts: accounts as unknown as TwinServers["accounts"],
  };
}

async function startOne(fastPath: boolean, clock: TestClock, keys: readonly NewKey[], tls?: ServingSettings["tls"]) {
  let strict: StrictLimiter | undefined;
  const waitingRoom = new WaitingRoom(10_000);
  const cache = { ttlMs: 60_000, keysMax: 1000, waitingRoom };
  const override = (parts: ApiParts) => {
    strict = createStrictLimiter(parts, waitingRoom);
    return {
      keys: new CachedKeyLookup(failOnSome(parts.keys), cache, parts),
      usage: failOnOne(parts.usage),
      limiter: limiterByMode({ local: parts.limiter, strict }),
      fastPath,
      settings: { ...parts.settings, tls },
    };
  };
  const { onePort, listener, store, metrics, logLines } = composePublicApi(override, { clock, logLevel: "debug" });
  for (const key of keys) await createKey(store.management, key);
  const port = await onePort.listen(0, "127.0.0.1");
  const bareServer = createBareServer(listener);
  await new Promise<void>((resolve) => bareServer.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    bareServer.closeAllConnections();
    await onePort.close(0);
    await strict?.stop();
  });
  return {
    port,
    barePort: (bareServer.address() as AddressInfo).port,
    readByHand: async () =>
      Number(/^latchkey_http1_requests_total\{.*"by_hand"\} (\d+)$/m.exec(await metrics.render())?.[1]),
    account: async () => ({
      metrics: withoutTurns(await metrics.render()),
      log: logLines.filter(isNotPaced).map(withoutParticulars).sort(),
      ids: logLines.flatMap((line) => {
        const { requestId, method } = JSON.parse(line) as { requestId: string; method?: string };
        return method === undefined ? [] : requestId;
      }),
    }),
  };
}

function createStrictLimiter({ store, ...ambient }: ApiParts, waitingRoom: WaitingRoom): StrictLimiter {
  const limiter: StrictLimiter = new StrictLimiter({
    ...ambient,
    channel: new Coordinator(store.permitLanes, ambient).join((keyId) => limiter.recall(keyId)),
    freeStandingMax: 1000,
    poolsMax: 100,
    // However busy the machine is.
    timeoutMs: () => 60_000,
    waitingRoom,
  });
  return limiter;
}

/** A server of Node alone. Like the port, it refuses malformed bytes after the pending answers. */
function createBareServer(listener: RequestListener): http.Server {
  const unanswered = new Set<http.ServerResponse>();
  const receive: RequestListener = (req, res) => {
    unanswered.add(res);
    res.on("close", () => unanswered.delete(res));
    listener(req, res);
  };
  const refuse = async (error: Error, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    const due = [...unanswered].filter(({ req }) => req.socket === socket && req.complete);
    // At once where nothing is due, as the port does.
    if (due.length > 0) await Promise.all(due.map((res) => new Promise((resolve) => res.once("close", resolve))));
    if (socket.writable) socket.end(malformedResponse(error, "req_0000000000000000000000"));
    else socket.destroy();
  };
  const server = http.createServer({ requireHostHeader: false, keepAliveTimeout: defaultTimeouts.keepAliveMs });
  // A client that sends no more still gets its answers.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on("request", receive).on("checkExpectation", receive).on("clientError", refuse);
  return server.on("connect", (_, socket) => void refuse(new Error("a tunnel"), socket));
}

/** One store that cannot be reached, and one that is broken. */
function failOnSome(keys: KeyLookup): KeyLookup {
  return {
    async findByDigest(digest) {
      const key = await keys.findByDigest(digest);
      if (key?.id === "key_of_unavailable") throw new Unavailable("the store is away", { retryAfterMs: 2500 });
      if (key?.id === "key_of_broken") throw new Error("a fault of our own");
      return key;
    },
  };
}

function failOnOne(usage: UsageLedger): UsageLedger {
  return {
    async spend(counters, cost) {
      if (counters[0] === "key_of_uncountable") throw new Unavailable("the ledger is away");
      return usage.spend(counters, cost);
    },
  };
}

/**
 * Without the parts that may differ: how a request was read, and which concurrent call was first. The latter shows in
 * the order of lines, and in which calls shared a look-up.
 */
function withoutTurns(metrics: string): string[] {
  const lookedUp = [...metrics.matchAll(/^latchkey_key_cache_total\{.*\} (\d+)$/gm)].map((match) => Number(match[1]));
  const lines = metrics.split("\n").filter((line) => !/^latchkey_(key_cache|http1_requests)_total/.test(line));
  return [...lines, `looked up: ${lookedUp.reduce((sum, count) => sum + count, 0)}`].sort();
}

/** Of errors only ten a second are logged: which ones depends on the order, too. Each call has a line at `debug` besides. */
function isNotPaced(line: string): boolean {
  return !line.includes('"msg":"an error was answered"');
}

function withoutParticulars(line: string): string {
  const { time: _, err, requestId, ...rest } = JSON.parse(line);
  return JSON.stringify({ ...rest, hasId: /^req_\w{22}$/.test(requestId), err: err?.message });
}
