import type { Question } from "../../src/core/wire.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { testRootKey as rootKey } from "../support/test-root-key.ts";

/* What someone sends about APIs who has the shared secret and is no edge of ours. */

const event = { id: "evt_1", atMs: 1, actor: "root" };
const read = (query: object): Question => ({ case: "read", value: { rootKey, queryJson: JSON.stringify(query) } });
const change = (commandJson: string): Question => ({
  case: "change",
  value: { rootKey, commandJson, idempotencyJson: "" },
});
const createApi = (given: object) =>
  change(JSON.stringify({ kind: "createApi", apiId: "api", name: "name", defaults: {}, event, ...given }));
const updateApi = (changes: object, given: object = {}) =>
  change(JSON.stringify({ kind: "updateApi", apiId: "api", changes, event, ...given }));

export const impossibleOfApis: Record<string, [string, Question][]> = {
  "a change of an API": [
    ["an API without a name of its own", createApi({ apiId: "" })],
    ["an API with too long an id", createApi({ apiId: "a".repeat(256) })],
    ["an API with a zero character", createApi({ apiId: "a\0" })],
    ["an API without defaults", createApi({ defaults: undefined })],
    ["an API with what APIs have not", createApi({ owner: "o" })],
    ["a default prefix with a dash", createApi({ defaults: { prefix: "a-b" } })],
    ["a default prefix of 17 characters", createApi({ defaults: { prefix: "a".repeat(17) } })],
    ["too short default secrets", createApi({ defaults: { byteLength: 15 } })],
    [
      "a default limit of nothing",
      createApi({ defaults: { rateLimit: { mode: "local", limit: 0, durationMs: 1000 } } }),
    ],
    ["a default counter below 0", createApi({ defaults: { remaining: -1 } })],
    ["a default bound on costs of 0", createApi({ defaults: { costMax: 0 } })],
    ["a default refill without a counter", createApi({ defaults: { refill: refillRule() } })],
    ["a default that keys have not", createApi({ defaults: { rateLimits: [] } })],
    ["an update of a version below all", updateApi({ name: "name" }, { ifVersion: -1 })],
    ["an update to no defaults at all", updateApi({ defaults: null })],
    ["an update to an empty name", updateApi({ name: "" })],
    ["an update of no API", updateApi({ name: "name" }, { apiId: "" })],
    ...[0, 501, 1.5].map((limit): [string, Question] => [
      `a deletion of ${limit} keys`,
      change(JSON.stringify({ kind: "deleteApiKeys", apiId: "api", limit, event })),
    ]),
    ["a stop of no API", change(JSON.stringify({ kind: "stopApi", apiId: "", event }))],
    ["a deletion of an API that says too little", change(JSON.stringify({ kind: "deleteApi", apiId: "api", event }))],
  ],
  "a question about APIs": [
    ["an API of no name", read({ kind: "api", apiId: "" })],
    ...[
      {},
      ...[0, 101, 1.5, "1"].map((limit) => ({ limit })),
      { limit: 1, after: "a" },
      { limit: 1, after: { createdAtMs: 0, apiId: "a" } },
      { limit: 1, after: { createdAtMs: 1, apiId: "" } },
      { limit: 1, within: ["a"] },
      { limit: 1, within: [] },
    ].map((given): [string, Question] => [`a list of APIs ${JSON.stringify(given)}`, read({ kind: "apis", ...given })]),
  ],
};

export const possibleOfApis: [string, Question][] = [
  ["an API", createApi({ defaults: { prefix: "a", byteLength: 255, remaining: 0, refill: refillRule(), costMax: 1 } })],
  ["another name of an API", updateApi({ name: null, defaults: {} }, { ifVersion: 1 })],
  ["a stop", change(JSON.stringify({ kind: "stopApi", apiId: "api", event }))],
  ["a piece of keys", change(JSON.stringify({ kind: "deleteApiKeys", apiId: "api", limit: 500, event }))],
  ["defaults", read({ kind: "apiDefaults", apiId: "api" })],
  ["a list of APIs", read({ kind: "apis", limit: 100, after: { createdAtMs: 1, apiId: "a" } })],
];
