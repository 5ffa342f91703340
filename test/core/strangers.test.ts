import * as grpc from "@grpc/grpc-js";
import { describe, expect, it, vi } from "vitest";
import type { Question } from "../../src/core/wire.ts";
import type { NewKey } from "../../src/domain/key.ts";
import { metaBytesMax, metaDepthMax } from "../../src/domain/meta.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { testRootKey as rootKey } from "../support/test-root-key.ts";
import { metaOf, realKey } from "./core-cases.ts";
import { openRawStream } from "./raw-stream.ts";
import { impossibleOfApis, possibleOfApis } from "./strange-apis.ts";
import { impossibleAsks } from "./strange-asks.ts";
import { charge, impossibleCharges, possibleCharges } from "./strange-charges.ts";
import { impossibleOfLists } from "./strange-lists.ts";
import { impossibleOfOwners, possibleOfOwners } from "./strange-owners.ts";
import { impossibleReports, possibleReports } from "./strange-reports.ts";
import { countedKey, sharedSecret, startTestCoordinator } from "./test-coordinator.ts";

/*
 * What someone sends who has the shared secret and is no edge of ours. The root key is the right one, so that nothing is
 * refused because of it.
 */

const digest = "d".repeat(43);
const none = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5];
const latestMs = 253_402_300_799_999;

type Position = NonNullable<Extract<Question, { case: "feed" }>["value"]["since"]>;

const lookup = (text: string): Question => ({ case: "lookup", value: { digest: text } });
const feed = (since: Position): Question => ({
  case: "feed",
  value: { since: { epoch: "e", transaction: 1, ...since } },
});
const read = (query: object): Question => ({ case: "read", value: { rootKey, queryJson: JSON.stringify(query) } });
const kept = (text: string, nowMs: number) => read({ kind: "keptAnswer", lookup: text, nowMs });
const change = (commandJson: string, idempotencyJson = ""): Question => ({
  case: "change",
  value: { rootKey, commandJson, idempotencyJson },
});
const event = { id: "evt_1", atMs: 1, actor: "root" };
const updateKey = (changes: object, given: object = {}) =>
  change(JSON.stringify({ kind: "updateKey", keyId: "key", changes, event, ...given }));
const setLimit = (keyId: string, limit: number, durationMs: number) =>
  updateKey({ rateLimit: { mode: "strict", limit, durationMs } }, { keyId });
const update = (given: object) =>
  change(JSON.stringify({ kind: "updateRemaining", keyId: "key", op: "set", value: 1, event, ...given }));

/** The properties of a key, of which each can be anything. */
type Given = { readonly [Name in keyof NewKey]?: unknown } & Readonly<Record<string, unknown>>;

/** A creation with everything, except for these properties. */
function create(given: Given = {}, record: object = {}): Question {
  const now = Date.now();
  const times = { createdAtMs: now, expiresAtMs: now };
  const kept = { lookup: digest, targetId: "key", requestDigest: digest, sealedAnswer: "sealed", ...times };
  const key = realKey({
    remaining: 5,
    refill: refillRule(),
    rateLimit: { mode: "strict", limit: 1, durationMs: 1000 },
    ownerId: "owner",
    name: "name",
    expiresAtMs: now + 1000,
  });
  const command = { kind: "createKey", key: { ...key, ...given }, event };
  return change(JSON.stringify(command), JSON.stringify({ ...kept, ...record }));
}

/** The metadata as its JSON text, which need not be JSON. */
const createMeta = (metaJson: string): Question => {
  const { value } = create({ meta: "META" }) as { value: { commandJson: string; idempotencyJson: string } };
  return change(value.commandJson.replace('"META"', metaJson), value.idempotencyJson);
};
const withRootKey = (rootKey: string, question: Question) =>
  ({ ...question, value: { ...question.value, rootKey } }) as Question;
const createRecord = (given: object) => create({}, given);
const createRefill = (given: object) => create({ refill: { ...refillRule(), ...given } });
const createLimit = (limit: number, durationMs: number) => create({ rateLimit: { mode: "strict", limit, durationMs } });
const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

/** What no edge of ours sends, under what is wrong with it. */
const impossible: Record<string, [string, Question | undefined][]> = {
  "an empty call": [["no question", undefined]],
  "a look-up": [
    ["a look-up of two digests", lookup(`${digest},${digest}`)],
    ["a look-up with a comma", lookup(`${digest.slice(1)},`)],
    ["a look-up of nothing", lookup("")],
    ["a look-up of too short a digest", lookup(digest.slice(1))],
    ["a look-up of too long a digest", lookup(`${digest}d`)],
    ["a look-up of a megabyte", lookup("d".repeat(1_000_000))],
    ["a look-up with a zero character", lookup(`${digest.slice(1)}\0`)],
    ["a look-up with a line break after it", lookup(`${digest}\n`)],
  ],
  "a charge": impossibleCharges,
  "an ask for a free-standing limit": impossibleAsks,
  "a report of windows": impossibleReports,
  "a creation": [
    ["a creation of no key", change('{"kind":"createKey"}')],
    ["a key that says whether its API must exist", change('{"kind":"createKey","apiMustExist":false}')],
    ["a property that keys do not have", create({ admin: true })],
    ["a prototype", change('{"kind":"createKey","key":{"__proto__":{"id":"key"}}}')],
    ...["", digest.slice(1), `${digest},${digest}`, `${digest.slice(1)}\0`].map((text): [string, Question] => [
      `a creation with the digest ${JSON.stringify(text)}`,
      create({ secretDigest: text }),
    ]),
    ["metadata that is nested too deep", createMeta(nested(metaDepthMax + 1))],
    ["metadata that is nested 8 000 deep", createMeta(nested(8000))],
    ["metadata that is nested a million deep", createMeta(nested(1_000_000))],
    ["a byte too much metadata", create({ meta: metaOf(metaBytesMax + 1) })],
    ...["[]", "null", '"text"', "1", "true", " ", "{", '{"a":}', "{'a':1}", '{"a":1}x', "NaN", "\0"].map(
      (metaJson): [string, Question] => [`the metadata ${JSON.stringify(metaJson)}`, createMeta(metaJson)],
    ),
    ["a refill without a counter", create({ remaining: undefined })],
    ["a refill each hour", createRefill({ interval: "hourly" })],
    ["a refill at no interval", createRefill({ interval: "" })],
    ...[0, ...none, 2 ** 31].map((amount): [string, Question] => [`a refill of ${amount}`, createRefill({ amount })]),
    ...[...none, 2 ** 31].map((remaining): [string, Question] => [`a counter of ${remaining}`, create({ remaining })]),
    ["a limit of nothing", createLimit(0, 1000)],
    ["a limit of less than nothing", createLimit(-1, 1000)],
    ...[0, 999, ...none, 2_592_000_001].map((durationMs): [string, Question] => [
      `a window of ${durationMs} ms`,
      createLimit(1, durationMs),
    ]),
    ...(["id", "apiId", "ownerId", "name"] as const).flatMap((field): [string, Question][] => [
      [`an empty ${field}`, create({ [field]: "" })],
      [`an ${field} of 256 characters`, create({ [field]: "😀".repeat(256) })],
      [`an ${field} with a zero character`, create({ [field]: "a\0b" })],
    ]),
    ["an empty start", create({ start: "" })],
    ["a start of 256 characters", create({ start: "s".repeat(256) })],
    ["a start with a zero character", create({ start: "\0" })],
    ...[0, ...none, latestMs + 1].map((expiresAtMs): [string, Question] => [
      `an expiry at ${expiresAtMs}`,
      create({ expiresAtMs }),
    ]),
    ...[...none, latestMs + 1].map((createdAtMs): [string, Question] => [
      `a creation at ${createdAtMs}`,
      create({ createdAtMs }),
    ]),
    ["an answer kept under no digest", createRecord({ lookup: "" })],
    ["an answer kept under two", createRecord({ lookup: `${digest},${digest}` })],
    ["an answer about nothing", createRecord({ targetId: "" })],
    ["an answer to no request", createRecord({ requestDigest: "" })],
    ["an empty answer", createRecord({ sealedAnswer: "" })],
    ["an answer that is not encrypted", createRecord({ sealedAnswer: '{"key":"secret"}' })],
    ["too long an answer", createRecord({ sealedAnswer: "s".repeat(8193) })],
    ["an answer that expires before it was made", createRecord({ expiresAtMs: 1 })],
    ["an answer that is kept for ever", createRecord({ expiresAtMs: Number.POSITIVE_INFINITY })],
    ["an answer of no time", createRecord({ createdAtMs: Number.NaN })],
    ["a creation with too long a root key", withRootKey("r".repeat(4097), create())],
  ],
  ...impossibleOfLists(create, updateKey),
  "another change": [
    ...["", "null", "[]", "{", "1", '{"kind":"rename"}', '{"kind":"toString"}', '{"kind":"deleteKey"}'].map(
      (commandJson): [string, Question] => [`the command ${commandJson}`, change(commandJson)],
    ),
    ["a rate limit that is a number", updateKey({ rateLimit: 1 })],
    ["a change of what a key has not", updateKey({ colour: "red" })],
    ["an owner that is no text", updateKey({ ownerId: 1 })],
    ["an empty name", updateKey({ name: "" })],
    ["no metadata", updateKey({ meta: null })],
    ["a key that is perhaps enabled", updateKey({ enabled: null })],
    ["an expiry before all time", updateKey({ expiresAtMs: 0 })],
    ["a refill of nothing", updateKey({ refill: { interval: "daily", amount: 0, carryOver: true } })],
    ["a change of a version below all", updateKey({ name: "name" }, { ifVersion: -1 })],
    ["a change of nothing that has a name", updateKey([])],
    ["a change of no key", setLimit("", 1, 1000)],
    ["a change of a key with a zero character", setLimit("\0", 1, 1000)],
    ["a change of a key with half a character", setLimit("key\ud800", 1, 1000)],
    ["a command of a megabyte", change(`{"kind":"deleteKey","keyId":${"[".repeat(1_000_000)}`)],
    ["a change of a key with too long an id", setLimit("k".repeat(256), 1, 1000)],
    ["a change to a limit of nothing", setLimit("key", 0, 1000)],
    ["a change to a window without an end", setLimit("key", 1, Number.POSITIVE_INFINITY)],
    ...[-1, 0.5, 2 ** 31, "1", null, Number.NaN].map((value): [string, Question] => [
      `an update to ${value} uses`,
      update({ value }),
    ]),
    ["an increment by nothing", update({ op: "increment", value: undefined })],
    ["a decrement by nothing", update({ op: "decrement", value: undefined })],
    ["an update that multiplies", update({ op: "multiply" })],
    ["an update without an event", update({ event: undefined })],
    ["an update at no time", update({ event: { ...event, atMs: Number.NaN } })],
    ["an update by no root key", update({ event: { ...event, actor: "" } })],
    ["an update of no key", update({ keyId: "" })],
    ["a change to a key that is a list", change(JSON.stringify({ kind: "deleteKey", keyId: ["key"], event }))],
    [
      "a change with more than it needs",
      change(JSON.stringify({ kind: "deleteKey", keyId: "key", force: true, event })),
    ],
  ],
  ...impossibleOfApis,
  ...impossibleOfOwners,
  "another question of management": [
    ["a question of no kind", read({})],
    ...[
      {},
      { limit: 1 },
      { apiId: "", limit: 1 },
      { apiId: "a" },
      ...[0, 101, 1.5, "1"].map((limit) => ({ apiId: "a", limit })),
      { apiId: "a", limit: 1, ownerId: "o".repeat(256) },
      { apiId: "a", limit: 1, enabled: 1 },
      { apiId: "a", limit: 1, expiresBeforeMs: -1 },
      { apiId: "a", limit: 1, search: "" },
      { apiId: "a", limit: 1, search: "a\0" },
      { apiId: "a", limit: 1, after: "" },
      { apiId: "a", limit: 1, offset: 1 },
      { apiId: "a", limit: 1, apiIds: ["a"] },
    ].map((list): [string, Question] => [`the list ${JSON.stringify(list)}`, read({ kind: "keys", ...list })]),
    ...[
      {},
      { limit: 0 },
      { limit: 101 },
      { limit: 1, targetId: "" },
      { limit: 1, actor: "a\0" },
      { limit: 1, method: "m".repeat(256) },
      { limit: 1, sinceMs: 0 },
      { limit: 1, untilMs: 1.5 },
      { limit: 1, apiIds: [] },
      { limit: 1, after: 1 },
      { limit: 1, fields: "name" },
    ].map((list): [string, Question] => [`the events ${JSON.stringify(list)}`, read({ kind: "events", ...list })]),
    ["a kept answer under no digest", kept("", 1)],
    ["a kept answer at no time", kept(digest, Number.NaN)],
    ["a root key that is too long", { case: "rootKey", value: { rootKey: "r".repeat(4097) } }],
  ],
  "a question for changes": [
    ...[Number.NaN, Number.POSITIVE_INFINITY, 1.5, 2 ** 53].map((transaction): [string, Question] => [
      `a position at ${transaction}`,
      feed({ transaction }),
    ]),
    ["a position after no number of heartbeats", feed({ heartbeat: { reader: "r", count: Number.NaN } })],
    ["a position of a huge epoch", feed({ epoch: "e".repeat(10_001) })],
    ["a position with a zero character", feed({ epoch: "e\0" })],
    ["a position before the first", feed({ transaction: -1 })],
    ["a position with a line break", feed({ heartbeat: { reader: "r\n", count: 1 } })],
  ],
};

async function setUp() {
  const coordinator = await startTestCoordinator({ secret: sharedSecret });
  const keyId = await countedKey(coordinator.store, 5);
  const { store } = coordinator;
  const managed = [vi.spyOn(store.management, "change"), vi.spyOn(store.management, "read")];
  const read = [vi.spyOn(store.keys, "findByDigest"), vi.spyOn(store.changes, "read")];
  const open = () => openRawStream(coordinator.address, `Bearer ${sharedSecret}`);
  const other = open();
  const ask = (id: number) => other.send({ calls: [{ id, question: charge(keyId, 1) }] });
  const remaining = (id: number) => {
    const { case: kind, value } = other.answers.find((answer) => answer.id === id)?.answer ?? {};
    return kind === "charge" ? value?.results[0]?.outcome.value : undefined;
  };
  ask(1);
  await vi.waitFor(() => expect(remaining(1)).toMatchObject({ granted: 1, remaining: 4 }), { interval: 5 });
  const asked = [...managed, ...read];
  return { ...coordinator, open, ask, remaining, asked };
}

describe("what no edge of ours sends", () => {
  it.each(Object.entries(impossible))("ends the stream and reaches nothing: %s", async (_, calls) => {
    const { open, ask, remaining, asked, charged } = await setUp();
    const outcomes = await Promise.all(
      calls.map(async ([name, question]) => {
        const stranger = open();
        const answered = stranger.answered.then((answer) => `answered with ${answer.case}`);
        stranger.send({ calls: [{ id: 1, ...(question && { question }) }] });
        const ended = stranger.ended.then(({ code, details }) => `${grpc.status[code]}: ${details}`);
        return [name, await Promise.race([answered, ended])];
      }),
    );
    const unread = "INVALID_ARGUMENT: a message of the stream could not be read";
    expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(calls.map(([name]) => [name, unread])));
    expect(asked.map((method) => method.mock.calls)).toEqual(asked.map(() => []));
    // The other stream goes on.
    ask(2);
    await vi.waitFor(() => expect(remaining(2)).toMatchObject({ granted: 1, remaining: 3 }), { interval: 5 });
    expect(charged.map(({ count }) => count)).toEqual([1, 1]);
  });

  it("is none of these", async () => {
    const possible: [string, Question][] = [
      ["a look-up", lookup(digest)],
      ...possibleCharges,
      ...possibleReports,
      ["a creation with everything", create()],
      ["a creation with the greatest values", create({ meta: metaOf(metaBytesMax), remaining: 2 ** 31 - 1 })],
      ["a creation with deep metadata", createMeta(nested(metaDepthMax))],
      ["a creation with names of 255 characters", create({ name: "😀".repeat(255), expiresAtMs: latestMs })],
      ["another rate limit", setLimit("key", 1, 1000)],
      ...possibleOfApis,
      ...possibleOfOwners,
      ["a kept answer", kept(digest, 1)],
      ["a root key", { case: "rootKey", value: { rootKey: "r".repeat(4096) } }],
      ["a position", feed({ heartbeat: { reader: "r", count: 1 } })],
    ];
    const { open } = await setUp();
    for (const [name, question] of possible) {
      const stream = open();
      stream.send({ calls: [{ id: 1, question }] });
      expect([name, (await stream.answered).case]).toEqual([name, question.case]);
    }
  });

  it("is not what fails in the coordinator's own code, whatever kind of error that is", async () => {
    const { open, store } = await setUp();
    const edge = open();
    for (const [index, error] of [new RangeError("too long"), new TypeError("not a function")].entries()) {
      vi.spyOn(store.keys, "findByDigest").mockRejectedValueOnce(error);
      const [id, nextId] = [2 * index + 1, 2 * index + 2];
      edge.send({ calls: [{ id, question: lookup(digest) }] });
      const answer = (of: number) => edge.answers.find((each) => each.id === of)?.answer;
      const failure = { case: "failure", value: { reason: "the coordinator has failed" } };
      await vi.waitFor(() => expect(answer(id)).toMatchObject(failure), { interval: 5 });
      // The same stream goes on.
      edge.send({ calls: [{ id: nextId, question: lookup(digest) }] });
      await vi.waitFor(() => expect(answer(nextId)?.case).toBe("lookup"), { interval: 5 });
    }
  });
});
