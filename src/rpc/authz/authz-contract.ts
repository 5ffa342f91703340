// What `/v1/authz` takes and answers. The handler uses these names, and the API reference is made of them. It imports
// nothing, because the generator reads it before there is generated code.

export const authzPath = "/v1/authz";

/** Where the key is, unless it is in `Authorization: Bearer <key>`. */
export const keyHeader = "x-api-key";

export const authzDescription = `Tells a proxy whether a request may pass. It is \`keys.verifyKey\`, asked by headers and
query parameters and answered by a status and headers, without a body. Any HTTP method is answered as GET is, and a body that
comes with it is not read. The key comes in \`Authorization: Bearer\`, else in \`${keyHeader}\`. A parameter that is unknown,
empty or there twice is a 400.`;

export const rootKeyHeader = {
  name: "x-latchkey-root-key",
  description:
    "A root key with the permission `keys.verify`. Needed with `LATCHKEY_VERIFY_AUTH=required`, else not looked at. The proxy sets it, always: what an end user sends under this name must not reach the service.",
};

export const ipHeaderParameter = {
  name: "ipHeader",
  description:
    "In place of `ip`: the name of the request's header that has the end user's address. Of a list, the last one counts. Default: no address is told.",
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
} as const;

/** The other parameters, with the field of `VerifyKeyRequest` that each fills: its meaning and its bounds are the field's. */
export const fieldOfParameter = {
  apiId: "apiId",
  permissions: "permissions",
  cost: "remaining.cost",
  ratelimitCost: "ratelimit.cost",
  ip: "ip",
} as const;

/** The statuses of answers that are no verification's. Those of verifications are the same as for the client's middleware. */
export const statusOfCode = { BAD_REQUEST: 400, MISSING_KEY: 401, UNAVAILABLE: 503 } as const;

const encoded = "Percent-encoded as by `encodeURIComponent`, and empty where there is nothing to tell.";

/** Headers of every answer, and what they mean. */
export const commonHeaders = {
  "x-latchkey-key-id": `The key's id. ${encoded}`,
  "x-latchkey-owner-id": `Who holds the key. ${encoded}`,
  "x-latchkey-code": "How it was decided. More codes may be added.",
  "x-latchkey-reason": `Why the key was refused, in a sentence for people. ${encoded}`,
  "cache-control": "Always `no-store`.",
  "x-request-id": "Identifier of the request; the service's log carries it too.",
} as const;

const retryAfter = "How many seconds to wait before trying again, where that helps.";

/** Sent with answers about a key that has limits, or whose owner has. */
const limits = {
  ratelimit:
    'If there are limits: of each its name, what is left and the seconds until its window ends, `"minute";r=99;t=17`. The limit that has refused comes first; one without a name is `"default"`.',
  "ratelimit-policy":
    'If there are limits: of each its name, how much it lets pass in a window, and the length of that in seconds, `"minute";q=100;w=60`.',
} as const;

/** What each status means, and the headers that some or all of its answers have besides. */
export const answers = {
  200: { description: "The key is valid, and was charged.", headers: limits },
  400: {
    description:
      "The parameters are wrong, the end user's address is none, or the cost is above the key's `costMax`: a mistake in the proxy's configuration.",
    headers: {},
  },
  401: {
    description: "There is no key, or it is not valid.",
    headers: {
      "www-authenticate": '`Bearer`, and for a key that is not valid `Bearer error="invalid_token"`.',
      ...limits,
    },
  },
  403: { description: "The key is valid, but not for this.", headers: limits },
  429: {
    description: "A limit is reached, or a counter is used up.",
    headers: {
      "retry-after": "How many seconds until the limit's window ends, or until the counter is refilled if it ever is.",
      ...limits,
    },
  },
  503: {
    description:
      "Nobody could decide: an outage, or a root key that is missing, wrong or not allowed to verify. Nothing that the end user has done.",
    headers: { "retry-after": retryAfter },
  },
} as const;

type HeadersOfStatus = { [Status in keyof typeof answers]: keyof (typeof answers)[Status]["headers"] };

/** The headers that some answers have, besides those of every answer. */
export type AnswerHeader = HeadersOfStatus[keyof typeof answers];
