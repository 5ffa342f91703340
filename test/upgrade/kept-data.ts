import { createHash } from "node:crypto";
import type { LatchkeyClient } from "../../gen/latchkey/v1/client.ts";
import { rawClient } from "../support/raw-client.ts";
import { testRootKey } from "../support/test-root-key.ts";

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;
/** The beginning of 2100. */
const farAway = 4_102_444_800_000;

/** A call that is made several times in a row, and what has to be answered each time. */
export interface KeptCall {
  readonly what: string;
  /** Such as `keys.verifyKey`. */
  readonly method: string;
  readonly request: object;
  /** By default the one that may do everything. */
  readonly rootKey?: string;
  /** Each answer has at least these fields. A refused call is `{ error: code }`. */
  readonly answers: readonly object[];
  /** From this moment on the data answers otherwise: a refill is due, a window or a secret has ended. */
  readonly until?: number;
  readonly later?: readonly object[];
}

type Verify = (key: string, more?: object) => Promise<{ ratelimit?: { reset: number } }>;

/** Makes keys of every kind on an empty service, uses them, and tells what has to be answered afterwards, in this order. */
export async function makeKeptData(baseUrl: string): Promise<KeptCall[]> {
  const client = rawClient({ baseUrl, rootKey: testRootKey });
  const verify: Verify = (key, more = {}) => client.keys.verifyKey({ key, ...more });
  return [
    ...(await makeCounters(client, verify)),
    ...(await makeLimits(client, verify)),
    ...(await makeOwners(client, verify)),
    ...(await makeProperties(client)),
    ...(await makeSecrets(client, verify)),
    ...(await makeRootKeys(client)),
    // Last: everything that was changed is in them.
    await keepEvents(client),
  ];
}

function verification(what: string, key: string, answers: readonly object[], more: Partial<KeptCall> = {}): KeptCall {
  return { what, method: "keys.verifyKey", answers, ...more, request: { key, ...more.request } };
}

const limited = { valid: false, code: "RATE_LIMITED" };
const notFound = { valid: false, code: "NOT_FOUND" };

async function makeCounters({ keys }: LatchkeyClient, verify: Verify): Promise<KeptCall[]> {
  const apiId = "counters";
  const counted = await keys.createKey({ apiId, remaining: 10 });
  for (let i = 0; i < 3; i++) await verify(counted.key);
  const priced = await keys.createKey({ apiId, remaining: 100, costMax: 50 });
  await verify(priced.key, { remaining: { cost: 40 } });
  const empty = await keys.createKey({ apiId, remaining: 1 });
  await verify(empty.key);
  const daily = await keys.createKey({ apiId, remaining: 5, refill: { interval: "daily", amount: 5 } });
  for (let i = 0; i < 2; i++) await verify(daily.key);
  const carried = { interval: "monthly", amount: 100, carryOver: true } as const;
  const monthly = await keys.createKey({ apiId, remaining: 10, refill: carried });
  await verify(monthly.key);
  const nextRefillAt = async (keyId: string) => (await keys.getKey({ keyId })).refill?.nextRefillAt ?? 0;
  const left = (remaining: number) => ({ valid: true, code: "VALID", remaining });
  return [
    verification("a counter", counted.key, [left(6), left(5)]),
    verification("a cost", priced.key, [left(10)], { request: { remaining: { cost: 50 } } }),
    verification("a counter that is used up", empty.key, [{ valid: false, code: "USAGE_EXCEEDED", remaining: 0 }]),
    verification("a counter with a daily refill", daily.key, [left(2)], {
      until: await nextRefillAt(daily.keyId),
      later: [left(4)],
    }),
    verification("a counter with a monthly refill that carries over", monthly.key, [left(8)], {
      until: await nextRefillAt(monthly.keyId),
      later: [{ valid: true }],
    }),
  ];
}

async function makeLimits({ keys, apis }: LatchkeyClient, verify: Verify): Promise<KeptCall[]> {
  const apiId = "limits";
  const local = await keys.createKey({ apiId, ratelimit: { async: true, limit: 5, duration: 60_000 } });
  const strict = await keys.createKey({ apiId, ratelimit: { async: false, limit: 5, duration: monthMs } });
  const state = [await verify(strict.key), await verify(strict.key), await verify(strict.key)];
  const named = [
    { name: "minute", limit: 100, duration: 60_000 },
    { name: "month", async: false, limit: 3, duration: monthMs },
  ];
  const several = await keys.createKey({ apiId, ratelimits: named });
  const openedAt = Date.now();
  await verify(several.key, { ratelimits: [{ name: "month", cost: 2 }] });
  const defaults = { prefix: "kept", ratelimit: { limit: 7, duration: 60_000 } };
  await apis.createApi({ apiId: "with-defaults", name: "Kept", defaults });
  const inherited = await keys.createKey({ apiId: "with-defaults" });
  const valid = { valid: true, ratelimit: { limit: 5 } };
  return [
    verification("a local limit", local.key, [{ valid: true, ratelimit: { limit: 5, remaining: 4 } }]),
    verification("a strict limit with an open window", strict.key, [valid, valid, limited], {
      until: state[0]?.ratelimit?.reset ?? 0,
      later: [valid, valid, valid, valid, valid, limited],
    }),
    verification("several limits", several.key, [{ valid: true }, limited], {
      until: openedAt + monthMs,
      later: [{ valid: true }, { valid: true }, { valid: true }, limited],
    }),
    verification("a key with an API's defaults", inherited.key, [{ valid: true, ratelimit: { limit: 7 } }]),
    {
      what: "an API",
      method: "apis.getApi",
      request: { apiId: "with-defaults" },
      answers: [{ name: "Kept", defaults }],
    },
  ];
}

async function makeOwners({ keys, owners }: LatchkeyClient, verify: Verify): Promise<KeptCall[]> {
  const apiId = "owned";
  const ownerId = "owner_kept";
  const ratelimits = [{ name: "minute", async: true, limit: 50, duration: 60_000 }];
  await owners.createOwner({ ownerId, meta: { plan: "team" }, remaining: 20, ratelimits });
  const first = await keys.createKey({ apiId, ownerId });
  const second = await keys.createKey({ apiId, ownerId, remaining: 5 });
  for (const { key } of [first, second]) await verify(key);
  await owners.createOwner({ ownerId: "owner_disabled", enabled: false });
  const disabled = await keys.createKey({ apiId, ownerId: "owner_disabled" });
  const shared = (remaining: number) => ({ valid: true, ownerId, owner: { remaining } });
  return [
    verification("a key of an owner", first.key, [shared(17)]),
    verification("another key of that owner", second.key, [{ ...shared(16), remaining: 3 }]),
    verification("a key of a disabled owner", disabled.key, [{ valid: false, code: "DISABLED" }]),
    {
      what: "an owner",
      method: "owners.getOwner",
      request: { ownerId },
      answers: [{ meta: { plan: "team" }, remaining: 16, ratelimits }],
    },
  ];
}

async function makeProperties({ keys }: LatchkeyClient): Promise<KeptCall[]> {
  const apiId = "properties";
  const told = { name: "Ada's laptop", meta: { plan: { seats: 3 }, ключ: "值" }, ownerId: "user_42" };
  const plain = await keys.createKey({ apiId, ...told, expires: farAway });
  const disabled = await keys.createKey({ apiId, enabled: false });
  const allowed = await keys.createKey({ apiId, permissions: ["docs.read", "files.*"] });
  const near = await keys.createKey({ apiId, ipAllow: ["10.0.0.0/8", "2001:db8::/32"] });
  await keys.updateKey({ keyId: allowed.keyId, name: "renamed" });
  const insufficient = { valid: false, code: "INSUFFICIENT_PERMISSIONS" };
  return [
    verification("name, metadata and owner", plain.key, [{ valid: true, ...told }]),
    {
      what: "an expiry",
      method: "keys.getKey",
      request: { keyId: plain.keyId },
      answers: [{ expires: farAway, apiId }],
    },
    verification("a disabled key", disabled.key, [{ valid: false, code: "DISABLED" }]),
    verification("permissions", allowed.key, [{ valid: true, name: "renamed" }], {
      request: { permissions: "docs.read AND files.write" },
    }),
    verification("a permission that is missing", allowed.key, [insufficient], { request: { permissions: "admin" } }),
    verification("an allowed address", near.key, [{ valid: true }], { request: { ip: "10.1.2.3" } }),
    verification("another address", near.key, [{ valid: false, code: "FORBIDDEN" }], { request: { ip: "192.0.2.1" } }),
  ];
}

async function makeSecrets({ keys }: LatchkeyClient, verify: Verify): Promise<KeptCall[]> {
  const apiId = "secrets";
  const old = await keys.createKey({ apiId, remaining: 10 });
  const overlap = 90 * dayMs;
  const until = Date.now() + overlap;
  const { key } = await keys.rerollKey({ keyId: old.keyId, overlap });
  for (const secret of [key, old.key]) await verify(secret);
  const deleted = await keys.createKey({ apiId });
  await keys.deleteKey({ keyId: deleted.keyId });
  const text = "a-key-of-another-system-0123456789";
  const digest = createHash("sha256").update(text).digest("hex");
  await keys.importKeys({ apiId, keys: [{ digest, start: "a-ke", remaining: 3 }] });
  return [
    verification("a key with a new secret", key, [{ valid: true, remaining: 7 }]),
    verification("its secret before, during the overlap", old.key, [{ valid: true, remaining: 6 }], {
      until,
      later: [notFound],
    }),
    verification("a deleted key", deleted.key, [notFound]),
    verification("an imported key", text, [{ valid: true, remaining: 2 }]),
  ];
}

async function makeRootKeys({ rootKeys }: LatchkeyClient): Promise<KeptCall[]> {
  const reader = await rootKeys.createRootKey({ name: "Reader", permissions: ["apis.read"], expires: farAway });
  const revoked = await rootKeys.createRootKey({ permissions: ["*"] });
  await rootKeys.revokeRootKey({ rootKeyId: revoked.rootKeyId });
  const list = { method: "apis.getApi", request: { apiId: "limits" } };
  return [
    { what: "a root key", ...list, rootKey: reader.rootKey, answers: [{ apiId: "limits" }] },
    {
      what: "a root key without the permission",
      method: "keys.createKey",
      request: { apiId: "limits" },
      rootKey: reader.rootKey,
      answers: [{ error: "FORBIDDEN" }],
    },
    { what: "a revoked root key", ...list, rootKey: revoked.rootKey, answers: [{ error: "UNAUTHORIZED" }] },
  ];
}

async function keepEvents({ audit }: LatchkeyClient): Promise<KeptCall> {
  const request = { limit: 100, until: Date.now() + 1 };
  const { events } = await audit.listEvents(request);
  return { what: "audit events", method: "audit.listEvents", request, answers: [{ events }] };
}

/** Makes all calls, and describes what is answered otherwise than it has to be at this moment. */
export async function checkKeptData(baseUrl: string, calls: readonly KeptCall[], nowMs: number): Promise<string[]> {
  const problems: string[] = [];
  for (const {
    what,
    method,
    request,
    rootKey = testRootKey,
    answers,
    until = Number.POSITIVE_INFINITY,
    later,
  } of calls) {
    const expected = nowMs < until ? answers : (later ?? []);
    for (const [i, answer] of expected.entries()) {
      const came = await call(baseUrl, rootKey, method, request);
      if (!has(came, answer)) {
        problems.push(`${what}, call ${i + 1}: ${JSON.stringify(came)} in place of ${JSON.stringify(answer)}`);
      }
    }
  }
  return problems;
}

async function call(baseUrl: string, rootKey: string, method: string, request: object): Promise<unknown> {
  const [group = "", name = ""] = method.split(".");
  const client = rawClient({ baseUrl, rootKey }) as unknown as Record<
    string,
    Record<string, (request: object) => Promise<unknown>>
  >;
  try {
    return await client[group]?.[name]?.(request);
  } catch (error) {
    return { error: (error as { code?: string }).code ?? String(error) };
  }
}

/** Whether it has everything that is expected. Later versions may add fields, but nothing to a list. */
function has(came: unknown, expected: unknown): boolean {
  if (typeof expected !== "object" || expected === null) return came === expected;
  if (typeof came !== "object" || came === null) return false;
  if (Array.isArray(expected) && (!Array.isArray(came) || came.length !== expected.length)) return false;
  return Object.entries(expected).every(([name, value]) => has((came as Record<string, unknown>)[name], value));
}
