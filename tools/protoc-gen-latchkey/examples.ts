// An example of every method for the OpenAPI document: one story, in the order in which it can happen. A test sends it to
// the service and compares the answers, so that they are those that callers get, but for ids, secrets and times.

export interface Example {
  readonly request: Readonly<Record<string, unknown>>;
  readonly response: object;
}

const apiId = "api_weather";
const ownerId = "user_42";
const keyId = "key_034ypEmp1abNe9dNyQuYVu";
const key = "live_2J6dJSL23rOO3YKwZ8rcxn6mHFQJchjIC1AI4AR";
const rootKeyId = "root_034ypEn8tXRiPY2Bs1c68i";
/** In November 2026. */
const createdAt = 1_794_869_065_774;
const updatedAt = 1_794_869_066_109;
const reset = 1_794_869_126_317;
/** The first of November 2026. */
const startOfNovember = 1_793_491_200_000;
/** The first of December 2026. */
const nextRefillAt = 1_796_083_200_000;
/** The beginning of 2100. */
const expires = 4_102_444_800_000;

const api = {
  apiId,
  name: "Weather",
  defaults: { prefix: "live", ratelimit: { async: true, limit: 100, duration: 60_000 } },
  ownersRequired: false,
  createdAt,
  updatedAt: createdAt,
  version: 1,
};

const owner = {
  ownerId,
  meta: { plan: "team" },
  enabled: true,
  apiIds: [],
  remaining: 50_000,
  refill: { interval: "monthly", amount: 50_000, carryOver: false, nextRefillAt },
  ratelimits: [{ name: "minute", async: true, limit: 600, duration: 60_000 }],
  spent: 0,
  createdAt,
  updatedAt: createdAt,
  version: 1,
};

const { refill, ...storedKey } = {
  keyId,
  start: "live_2J6d",
  apiId,
  ownerId,
  name: "Ada's laptop",
  meta: { plan: "team" },
  enabled: true,
  createdAt,
  updatedAt: createdAt,
  remaining: 999,
  spent: 1,
  refill: { interval: "monthly", amount: 1000, carryOver: false, nextRefillAt },
  secrets: [{ start: "live_2J6d", createdAt }],
  version: 1,
  permissions: ["docs.read"],
  ipAllow: [],
  ratelimits: [],
};

const rootKey = {
  rootKeyId,
  start: "lk_root_Wr9t",
  name: "Dashboard",
  permissions: ["keys.create", "keys.read"],
  apiIds: [apiId],
  expires,
  createdAt,
  updatedAt: createdAt,
  version: 1,
  allApis: false,
};

/** By the path of the method. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  "/v1/apis.createApi": {
    request: { apiId, name: "Weather", defaults: { prefix: "live", ratelimit: { limit: 100, duration: 60_000 } } },
    response: api,
  },
  "/v1/apis.getApi": { request: { apiId }, response: api },
  "/v1/apis.listApis": { request: { limit: 10 }, response: { apis: [api] } },
  "/v1/apis.updateApi": {
    request: { apiId, name: "Weather and tides", defaults: null, ifVersion: 1 },
    response: { apiId, name: "Weather and tides", ownersRequired: false, createdAt, updatedAt, version: 2 },
  },
  "/v1/owners.createOwner": {
    request: {
      ownerId,
      meta: { plan: "team" },
      remaining: 50_000,
      refill: { interval: "monthly", amount: 50_000 },
      ratelimits: [{ name: "minute", limit: 600, duration: 60_000 }],
    },
    response: owner,
  },
  "/v1/owners.getOwner": { request: { ownerId }, response: owner },
  "/v1/owners.listOwners": { request: { limit: 10 }, response: { owners: [owner] } },
  "/v1/owners.updateOwner": {
    request: { ownerId, meta: { plan: "business" }, ifVersion: 1 },
    response: { ...owner, meta: { plan: "business" }, updatedAt, version: 2 },
  },
  "/v1/owners.updateRemaining": {
    request: { ownerId, op: "increment", value: 10_000 },
    response: { remaining: 60_000 },
  },
  "/v1/keys.createKey": {
    request: {
      apiId,
      prefix: "live",
      ownerId,
      name: "Ada's laptop",
      meta: { plan: "team" },
      remaining: 1000,
      refill: { interval: "monthly", amount: 1000 },
      permissions: ["docs.read"],
    },
    response: { keyId, key },
  },
  "/v1/keys.verifyKey": {
    request: { key, apiId, permissions: "docs.read" },
    response: {
      keyId,
      valid: true,
      code: "VALID",
      meta: { plan: "team" },
      remaining: 999,
      ownerId,
      name: "Ada's laptop",
      requestId: "req_034ypEmq2drhmpCgJNF500",
      ratelimits: [],
      owner: {
        remaining: 59_999,
        ratelimits: [{ name: "minute", limit: 600, remaining: 599, reset, duration: 60_000 }],
      },
    },
  },
  "/v1/keys.explainKey": {
    request: { keyId, permissions: "docs.read AND docs.write" },
    response: {
      code: "INSUFFICIENT_PERMISSIONS",
      checks: [
        { name: "api", passed: true, message: "no API was told, so that a key of any can be used" },
        { name: "enabled", passed: true, of: "key", message: "the key is enabled" },
        { name: "expiry", passed: true, message: "the key does not expire" },
        { name: "enabled", passed: true, of: "owner", message: "the key's owner is enabled" },
        { name: "ip", passed: true, message: "the key can be used from all addresses" },
        { name: "permissions", passed: false, missing: "docs.write", message: "the key lacks docs.write" },
        {
          name: "limit",
          passed: true,
          of: "owner",
          ratelimit: { name: "minute", limit: 600, remaining: 599, reset, cost: 1, async: true },
          message: "the limit minute of the key's owner suffices: 599 of 600 left, 1 needed (local)",
        },
        {
          name: "counter",
          passed: true,
          of: "key",
          counter: { remaining: 999, cost: 1, nextRefillAt },
          message: "the counter of the key suffices: 999 left, 1 needed, refilled at 2026-12-01T00:00:00.000Z",
        },
        {
          name: "counter",
          passed: true,
          of: "owner",
          counter: { remaining: 59_999, cost: 1, nextRefillAt },
          message:
            "the counter of the key's owner suffices: 59999 left, 1 needed, refilled at 2026-12-01T00:00:00.000Z",
        },
      ],
      reason: { check: "permissions", missing: "docs.write", message: "the key lacks docs.write" },
    },
  },
  "/v1/keys.getKey": { request: { keyId }, response: { ...storedKey, refill } },
  "/v1/keys.listKeys": {
    request: { apiId, search: "Ada", limit: 10 },
    response: { keys: [{ ...storedKey, refill }] },
  },
  "/v1/keys.updateKey": {
    request: { keyId, name: "Ada's desktop", refill: null, ifVersion: 1 },
    response: { ...storedKey, name: "Ada's desktop", updatedAt, version: 2 },
  },
  "/v1/usage.getSpending": {
    request: { ownerIds: [ownerId], start: startOfNovember, end: expires },
    response: {
      results: [
        {
          ownerId,
          spent: 1,
          buckets: [{ start: startOfNovember, end: expires, spent: 1, running: true }],
          meteredSince: createdAt,
          remaining: 59_999,
          nextRefillAt,
        },
      ],
    },
  },
  "/v1/audit.listEvents": {
    request: { targetId: keyId, method: "keys.updateKey", limit: 10 },
    response: {
      events: [
        {
          id: "evt_034ypEmxPkp6ePvrqeb3FS",
          at: updatedAt,
          method: "keys.updateKey",
          rootKeyId: "configured",
          targetId: keyId,
          apiId,
          fields: ["name", "refill"],
          version: 2,
        },
      ],
    },
  },
  "/v1/keys.updateRemaining": { request: { keyId, op: "set", value: 500 }, response: { remaining: 500 } },
  "/v1/keys.rerollKey": {
    request: { keyId, overlap: 86_400_000 },
    response: { keyId, key: "live_0u4R50xkKo8VojkJdCCBlUYyOHAojXSTZ1LGoV6" },
  },
  "/v1/keys.importKeys": {
    request: {
      apiId,
      keys: [
        {
          digest: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
          start: "old_4f",
          ownerId,
          remaining: 250,
        },
      ],
    },
    response: { results: [{ keyId: "key_034ypEn6tbFm8Zd1Zhcv7L" }] },
  },
  "/v1/ratelimits.limit": {
    request: { namespace: "login", identifier: "192.0.2.7", limit: 5, duration: 60_000 },
    response: { success: true, limit: 5, remaining: 4, reset },
  },
  "/v1/rootKeys.createRootKey": {
    request: { name: "Dashboard", permissions: ["keys.create", "keys.read"], apiIds: [apiId], expires },
    response: { rootKeyId, rootKey: "lk_root_Wr9tK8a7COBGc5bKq0Q2E5sQg3KpeO72hG1mTKUSeTR1u6LHi" },
  },
  "/v1/rootKeys.listRootKeys": { request: { limit: 10 }, response: { rootKeys: [rootKey] } },
  "/v1/rootKeys.updateRootKey": {
    request: { rootKeyId, permissions: ["keys.read"], ifVersion: 1 },
    response: { ...rootKey, permissions: ["keys.read"], updatedAt, version: 2 },
  },
  "/v1/rootKeys.revokeRootKey": { request: { rootKeyId }, response: {} },
  "/v1/keys.deleteKey": { request: { keyId }, response: {} },
  "/v1/owners.deleteOwner": { request: { ownerId, keys: "disable" }, response: {} },
  "/v1/apis.deleteApi": { request: { apiId, force: true }, response: {} },
};
