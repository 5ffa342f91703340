import { sha256 } from "../../src/ambient/crypto.ts";
import type { Key } from "../../src/domain/key.ts";
import type { KeyLookup } from "../../src/store/key-lookup.ts";

/** What the keys of a measurement have beside an id. */
export const kinds = {
  "nothing else": {},
  "an owner, a name and metadata": {
    ownerId: "user_01HZX4QJ8K",
    name: "Production",
    meta: '{"plan":"pro","seats":25,"region":"eu-central-1"}',
  },
  "a counter": { remaining: 1000 },
  "a rate limit": { limit: 100 },
} as const satisfies Record<string, Row>;

export type Kind = keyof typeof kinds;

interface Row {
  readonly ownerId?: string;
  readonly name?: string;
  readonly meta?: string;
  readonly remaining?: number;
  readonly limit?: number;
}

/** A store of every possible key: each look-up creates a new key of flat strings, as a database driver does. */
export function storeOf(kind: Kind): KeyLookup {
  const { ownerId, name, meta, remaining, limit }: Row = kinds[kind];
  let found = 0;
  return {
    async findByDigest(): Promise<Key> {
      const id = read(`key_${(found++).toString(36).padStart(22, "0")}`);
      return {
        id,
        apiId: read("api_billing"),
        ownerId: ownerId && read(ownerId),
        hasOwnerRecord: false,
        name: name && read(name),
        meta: JSON.parse(meta ?? "{}"),
        enabled: true,
        expiresAtMs: undefined,
        rateLimit: limit === undefined ? undefined : { mode: "local", limit, durationMs: 60_000 },
        counter: remaining === undefined ? undefined : { remaining },
        environment: undefined,
        rateLimits: undefined,
        costMax: undefined,
        permissions: undefined,
        ipAllow: undefined,
        secretExpiresAtMs: undefined,
      };
    },
  };
}

export function digestOf(n: number): string {
  return sha256(`key number ${n}`);
}

function read(text: string): string {
  return Buffer.from(text).toString("latin1");
}
