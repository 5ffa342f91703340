import type { Question } from "../../src/core/wire.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { testRootKey as rootKey } from "../support/test-root-key.ts";

/* What someone sends about owners who has the shared secret and is no edge of ours. */

const event = { id: "evt_1", atMs: 1, actor: "root" };
const read = (query: object): Question => ({ case: "read", value: { rootKey, queryJson: JSON.stringify(query) } });
const change = (command: object): Question => ({
  case: "change",
  value: { rootKey, commandJson: JSON.stringify({ event, ...command }), idempotencyJson: "" },
});
const createOwner = (given: object) =>
  change({ kind: "createOwner", owner: { id: "owner", enabled: true, meta: {}, ...given } });
const updateOwner = (changes: object, given: object = {}) =>
  change({ kind: "updateOwner", ownerId: "owner", changes, ...given });
const updateRemaining = (given: object) =>
  change({ kind: "updateOwnerRemaining", ownerId: "owner", op: "set", value: 1, ...given });

const limit = { name: "minute", rule: { mode: "strict", limit: 1, durationMs: 1000 } };
const texts = (count: number) => Array.from({ length: count }, (_, at) => `api ${at}`);

const badFields: [string, object][] = [
  ["metadata that is a list", { meta: [] }],
  ["a state that is a text", { enabled: "true" }],
  ["no API in the list", { apiIds: [] }],
  ["too many APIs", { apiIds: texts(101) }],
  ["an API without a name", { apiIds: ["api", ""] }],
  ["an API with a zero character", { apiIds: ["a\0"] }],
  ["no limit in the list", { rateLimits: [] }],
  ["a limit of nothing", { rateLimits: [{ ...limit, rule: { ...limit.rule, limit: 0 } }] }],
  ["two limits of one name", { rateLimits: [limit, limit] }],
  ["a refill of nothing", { remaining: 1, refill: { ...refillRule(), amount: 0 } }],
  ["what owners have not", { name: "name" }],
];

export const impossibleOfOwners: Record<string, [string, Question][]> = {
  "a new owner": [
    ...badFields.map(([name, fields]): [string, Question] => [name, createOwner(fields)]),
    ["an owner without a name of its own", createOwner({ id: "" })],
    ["an owner with too long an id", createOwner({ id: "o".repeat(256) })],
    ["an owner with half a character", createOwner({ id: "\ud800" })],
    ["an owner without metadata", createOwner({ meta: undefined })],
    ["an owner without a state", createOwner({ enabled: undefined })],
    ["a counter below 0", createOwner({ remaining: -1 })],
    ["a refill without a counter", createOwner({ refill: refillRule() })],
    ["an owner that is nothing", change({ kind: "createOwner" })],
  ],
  "a change of an owner": [
    ...badFields.map(([name, { remaining: _, ...fields }]: [string, { remaining?: unknown }]): [string, Question] => [
      name,
      updateOwner(fields),
    ]),
    ["an update of a version below all", updateOwner({ enabled: true }, { ifVersion: -1 })],
    ["an update to no metadata at all", updateOwner({ meta: null })],
    ["an update to no state", updateOwner({ enabled: null })],
    ["an update of a counter", updateOwner({ remaining: 5 })],
    ["an update of no owner", updateOwner({ enabled: true }, { ownerId: "" })],
    ["a counter of no owner", updateRemaining({ ownerId: "" })],
    ["a counter below 0", updateRemaining({ value: -1 })],
    ["another operation", updateRemaining({ op: "double" })],
    ["an increment of nothing", updateRemaining({ op: "increment", value: undefined })],
    ["a counter of a version", updateRemaining({ ifVersion: 1 })],
    ["a deletion of no owner", change({ kind: "deleteOwner", ownerId: "" })],
    ["a deletion of a version below all", change({ kind: "deleteOwner", ownerId: "owner", ifVersion: -1 })],
    ["a stop of no owner", change({ kind: "stopOwner", ownerId: "" })],
    [
      "a deletion unless there are keys of no API",
      change({ kind: "deleteOwner", ownerId: "owner", unless: { apiIds: [] } }),
    ],
    [
      "a deletion unless there are keys of a state",
      change({ kind: "deleteOwner", ownerId: "owner", unless: { enabled: 1 } }),
    ],
  ],
  "a question about owners": [
    ["an owner of no name", read({ kind: "owner", ownerId: "" })],
    ...[
      {},
      ...[0, 101, 1.5, "1"].map((limit) => ({ limit })),
      { limit: 1, after: "" },
      { limit: 1, after: { createdAtMs: 1, ownerId: "a" } },
      { limit: 1, within: ["a"] },
      { limit: 1, within: [] },
    ].map((given): [string, Question] => [
      `a list of owners ${JSON.stringify(given)}`,
      read({ kind: "owners", ...given }),
    ]),
  ],
};

export const possibleOfOwners: [string, Question][] = [
  ["an owner", createOwner({})],
  [
    "an owner with everything",
    createOwner({ id: "😀".repeat(255), apiIds: texts(100), rateLimits: [limit], remaining: 0, refill: refillRule() }),
  ],
  ["another owner", updateOwner({ meta: {}, enabled: false, apiIds: ["a"], rateLimits: [limit] }, { ifVersion: 1 })],
  ["an owner without anything", updateOwner({ apiIds: null, rateLimits: null, refill: null })],
  ["a counter", updateRemaining({})],
  ["no counter", updateRemaining({ value: undefined })],
  ["a deletion of an owner", change({ kind: "deleteOwner", ownerId: "owner" })],
  ["a read of an owner", read({ kind: "owner", ownerId: "owner" })],
  ["a list of owners", read({ kind: "owners", limit: 100, after: "evt_1" })],
];
