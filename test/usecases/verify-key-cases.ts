import { sha256 } from "../../src/ambient/crypto.ts";
import type { Key } from "../../src/domain/key.ts";
import type { PlannedRequest } from "../../src/domain/key-checks.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import type { RefusalReason } from "../../src/domain/refusal-reason.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { foundAs, sampleKey } from "../contract/sample-keys.ts";
import { TestClock } from "../support/test-clock.ts";
import { type Script, standing } from "./fakes.ts";

/** When every case is decided. */
export const nowMs = Date.UTC(2026, 0, 15, 12);
export const secret = formatKey("live", new Uint8Array(24).fill(1)).key;
export const plain = foundAs(sampleKey(new TestClock(), { id: "key_1", apiId: "api_1" }));
export const rateLimit = { mode: "strict", limit: 10, durationMs: 1000 } as const;
export const limited: Key = { ...plain, rateLimit };
export const limitedTo20: Key = { ...plain, rateLimit: { ...rateLimit, limit: 20 } };
// A new object each time: a verification writes the last seen balance into it.
export const counted = (): Key => ({ ...plain, counter: { remaining: 5 } });
export const both = (): Key => ({ ...limited, counter: { remaining: 5 } });
export const away = new Unavailable("away");

/** The calls to the parts, as text. */
export const find = `find ${sha256(secret)}`;
export const foreignText = `sk ☂ ${"x".repeat(16_000)}`;
export const findForeign = `find foreign ${sha256(foreignText)}`;
export const findFresh = `find fresh ${sha256(secret)}`;
export const [take, takeOf20] = ["take of 10 for key_1 of api_1", "take of 20 for key_1 of api_1"];
export const peek = "peek at 10 for key_1";
export const spend = "spend for key_1";

export interface Case extends Script {
  readonly name: string;
  readonly apiId?: string;
  readonly asked?: Pick<PlannedRequest, "permissions" | "ip" | "costs">;
  /** The key that is presented, where it is not the one that is stored. */
  readonly presented?: string;
  /** The answer to the caller, with the key's fields if it has any. */
  readonly verdict: DecidedCase | Error;
  /** All that is asked of store, limiter and ledger, in this order. */
  readonly did: readonly string[];
  /** The balance that the key shows from then on. */
  readonly balance?: number;
}

interface DecidedCase {
  readonly code: string;
  readonly remaining?: number | undefined;
  readonly rateLimit?: object | undefined;
  readonly rateLimits?: readonly object[];
  readonly ownerRemaining?: number;
  readonly ownerRateLimits?: readonly object[];
  readonly reason?: RefusalReason;
}

export const decided: Case[] = [
  {
    name: "what cannot be a key is not found, and costs no look at the store",
    presented: `${secret}x`,
    found: [],
    verdict: { code: "NOT_FOUND" },
    did: [],
  },
  {
    name: "what is longer than a key can be is not found, and costs no look at the store",
    presented: "a".repeat(1000),
    found: [],
    verdict: { code: "NOT_FOUND" },
    did: [],
  },
  {
    name: "where keys were imported, any text may be one of them, however long",
    presented: foreignText,
    hasImportedKeys: true,
    found: [plain],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [findForeign],
  },
  {
    name: "where keys were imported, garbage is looked up too, and not found",
    presented: foreignText,
    hasImportedKeys: true,
    found: [undefined],
    verdict: { code: "NOT_FOUND" },
    did: [findForeign],
  },
  {
    name: "where keys were imported, texts of our own are looked up as ever",
    hasImportedKeys: true,
    found: [plain],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  { name: "an unknown key is not found", found: [undefined], verdict: { code: "NOT_FOUND" }, did: [find] },
  {
    name: "a key without limit and counter is valid",
    found: [plain],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "a key is valid for its own API",
    apiId: "api_1",
    found: [plain],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "a verification for another API learns nothing of the key, takes no permit and consumes no use",
    apiId: "api_2",
    found: [both()],
    verdict: { code: "FORBIDDEN" },
    did: [find],
    balance: 5,
  },
  {
    name: "another API does not learn that the key is disabled, nor where its limit stands",
    apiId: "api_2",
    found: [{ ...limited, enabled: false }],
    verdict: { code: "FORBIDDEN" },
    did: [find],
  },
  {
    name: "a disabled key without a limit is refused",
    found: [{ ...plain, enabled: false }],
    verdict: { code: "DISABLED", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "a disabled key shows where it stands, takes no permit and consumes no use",
    found: [{ ...both(), enabled: false }],
    verdict: { code: "DISABLED", remaining: 5, rateLimit: standing.peeked },
    did: [find, peek],
    balance: 5,
  },
  {
    name: "an expired key takes no permit and consumes no use",
    found: [{ ...both(), expiresAtMs: nowMs }],
    verdict: { code: "EXPIRED", remaining: 5, rateLimit: standing.peeked },
    did: [find, peek],
    balance: 5,
  },
  {
    name: "a key is valid in the last millisecond before it expires",
    found: [{ ...plain, expiresAtMs: nowMs + 1 }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "a permit is committed when the key passes",
    found: [limited],
    permits: ["admitted"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: standing.taken },
    did: [find, take, "commit"],
  },
  {
    name: "a verification over the limit is refused, and there is no permit to commit or release",
    found: [limited],
    permits: ["limited"],
    verdict: { code: "RATE_LIMITED", remaining: undefined, rateLimit: standing.taken },
    did: [find, take],
  },
  {
    name: "a limited verification consumes no use, and shows the balance last seen",
    found: [both()],
    permits: ["limited"],
    verdict: { code: "RATE_LIMITED", remaining: 5, rateLimit: standing.taken },
    did: [find, take],
    balance: 5,
  },
];

export const counting: Case[] = [
  {
    name: "a use is spent, and the ledger's balance shown rather than the one last seen",
    found: [counted()],
    spends: [{ outcome: "spent", remaining: 2 }],
    verdict: { code: "VALID", remaining: 2, rateLimit: undefined },
    did: [find, spend],
    balance: 2,
  },
  {
    name: "the last use is a valid one",
    found: [counted()],
    spends: [{ outcome: "spent", remaining: 0 }],
    verdict: { code: "VALID", remaining: 0, rateLimit: undefined },
    did: [find, spend],
    balance: 0,
  },
  {
    name: "a key that was last seen empty is left to the ledger, which may have refilled it",
    found: [{ ...plain, counter: { remaining: 0 } }],
    spends: [{ outcome: "spent", remaining: 99 }],
    verdict: { code: "VALID", remaining: 99, rateLimit: undefined },
    did: [find, spend],
    balance: 99,
  },
  {
    name: "a key whose uses are spent is refused",
    found: [counted()],
    spends: [{ outcome: "exhausted", remaining: 0 }],
    verdict: { code: "USAGE_EXCEEDED", remaining: 0, rateLimit: undefined },
    did: [find, spend],
    balance: 0,
  },
  {
    name: "a permit is taken before a use is spent, and committed after",
    found: [both()],
    permits: ["admitted"],
    spends: [{ outcome: "spent", remaining: 4 }],
    verdict: { code: "VALID", remaining: 4, rateLimit: standing.taken },
    did: [find, take, spend, "commit"],
    balance: 4,
  },
  {
    name: "a verification without a use left releases its permit, and shows where the key stands then",
    found: [both()],
    permits: ["admitted"],
    spends: [{ outcome: "exhausted", remaining: 0 }],
    verdict: { code: "USAGE_EXCEEDED", remaining: 0, rateLimit: standing.released },
    did: [find, take, spend, "release"],
    balance: 0,
  },
];

export const outOfDate: Case[] = [
  {
    name: "an imported key whose counter was removed is read again as an imported one",
    presented: foreignText,
    hasImportedKeys: true,
    found: [counted(), plain],
    spends: [{ outcome: "missing" }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [findForeign, spend, findForeign.replace("find", "find fresh")],
  },
  {
    name: "a key that the limiter no longer has is looked up past the cache, and not found when it is deleted",
    found: [both(), undefined],
    permits: ["missing"],
    verdict: { code: "NOT_FOUND" },
    did: [find, take, findFresh],
  },
  {
    name: "a key whose limit was changed is held to the new one",
    found: [limited, limitedTo20],
    permits: ["missing", "admitted"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: standing.taken },
    did: [find, take, findFresh, takeOf20, "commit"],
  },
  {
    name: "a key whose limit was taken away passes without a permit, and still spends a use",
    found: [both(), counted()],
    permits: ["missing"],
    spends: [{ outcome: "spent", remaining: 4 }],
    verdict: { code: "VALID", remaining: 4, rateLimit: undefined },
    did: [find, take, findFresh, spend],
  },
  {
    name: "a key that was disabled meanwhile is refused",
    found: [limited, { ...limited, enabled: false }],
    permits: ["missing"],
    verdict: { code: "DISABLED", remaining: undefined, rateLimit: standing.peeked },
    did: [find, take, findFresh, peek],
  },
  {
    name: "a key that belongs to another API meanwhile is forbidden",
    apiId: "api_1",
    found: [limited, { ...limited, apiId: "api_2" }],
    permits: ["missing"],
    verdict: { code: "FORBIDDEN" },
    did: [find, take, findFresh],
  },
  {
    name: "a key that the limiter does not have twice is not found when it is gone by then",
    found: [both(), both(), undefined],
    permits: ["missing", "missing"],
    verdict: { code: "NOT_FOUND" },
    did: [find, take, findFresh, take, findFresh],
  },
  {
    name: "a key without the counter that it had is looked up past the cache, and not found when it is deleted",
    found: [counted(), undefined],
    spends: [{ outcome: "missing" }],
    verdict: { code: "NOT_FOUND" },
    did: [find, spend, findFresh],
  },
  {
    name: "a key whose counter was removed passes without a use",
    found: [counted(), plain],
    spends: [{ outcome: "missing" }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find, spend, findFresh],
  },
  {
    name: "a key whose counter was removed and made again spends a use of the new one",
    found: [counted(), counted()],
    spends: [{ outcome: "missing" }, { outcome: "spent", remaining: 8 }],
    verdict: { code: "VALID", remaining: 8, rateLimit: undefined },
    did: [find, spend, findFresh, spend],
  },
  {
    name: "a key whose counter was removed between permit and use releases its permit, and takes another one",
    found: [both(), limited],
    permits: ["admitted", "admitted"],
    spends: [{ outcome: "missing" }],
    verdict: { code: "VALID", remaining: undefined, rateLimit: standing.taken },
    did: [find, take, spend, "release", findFresh, take, "commit"],
  },
  {
    name: "a key deleted between permit and use releases its permit",
    found: [both(), undefined],
    permits: ["admitted"],
    spends: [{ outcome: "missing" }],
    verdict: { code: "NOT_FOUND" },
    did: [find, take, spend, "release", findFresh],
  },
];
