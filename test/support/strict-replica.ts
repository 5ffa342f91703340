import type { KeysClient } from "../../src/sdk/index.ts";
import { type ClientKind, clientOf } from "./clients.ts";
import type { StrictAnswer, StrictRule } from "./strict-book.ts";
import type { StrictReplica } from "./strict-load.ts";
import { testRootKey } from "./test-root-key.ts";

const grpcUnavailable = 14;
const kinds: readonly ClientKind[] = ["sdk", "grpc"];

/** Makes a key for each rule, through one replica. */
export async function createStrictKeys(baseUrl: string, rules: readonly StrictRule[]): Promise<string[]> {
  const client = clientOf("sdk", baseUrl, testRootKey);
  const create = async ({ limit, durationMs: duration }: StrictRule) =>
    (await client.createKey({ apiId: "api", ratelimit: { async: false, limit, duration } })).key;
  return Promise.all(rules.map(create));
}

/** A server that is asked with JSON and with gRPC in turns. */
export class HttpReplica implements StrictReplica {
  readonly #keys: readonly string[];
  readonly #clients: readonly KeysClient[];
  #calls = 0;

  constructor(baseUrl: string, keys: readonly string[]) {
    this.#keys = keys;
    this.#clients = kinds.map((kind) => clientOf(kind, baseUrl, testRootKey));
  }

  async ask(key: number): Promise<StrictAnswer> {
    const client = this.#clients[this.#calls++ % this.#clients.length] as KeysClient;
    try {
      const { valid, code, ratelimit } = await client.verifyKey({ key: this.#keys[key] as string });
      if (ratelimit === undefined) return { outcome: "odd", what: `key ${key}: ${code} without its rate limit` };
      const { limit = 0, remaining = 0, reset: resetMs = 0 } = ratelimit;
      if (valid) return { outcome: "admitted", limit, remaining, resetMs };
      if (code === "RATE_LIMITED") return { outcome: "limited", limit, remaining, resetMs };
      return { outcome: "odd", what: `key ${key}: ${code}` };
    } catch (error) {
      return failureOf(error);
    }
  }
}

function failureOf(error: unknown): StrictAnswer {
  const { status, code, rawMessage } = error as { status?: number; code?: unknown; rawMessage?: string };
  if (status === 503) return { outcome: "unavailable" };
  if (code === "NETWORK_ERROR" || code === "TIMEOUT") return { outcome: "unanswered" };
  // The library says 14 for a connection that broke, too; the service's own answer has its own words.
  const isAnswer = rawMessage?.startsWith("the service");
  if (code === grpcUnavailable) return { outcome: isAnswer ? "unavailable" : "unanswered" };
  return { outcome: "odd", what: String(error) };
}
