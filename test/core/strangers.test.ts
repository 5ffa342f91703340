import { describe, expect, it, vi } from "vitest";
import type { Question } from "../../src/core/wire.ts";
import { testRootKey as rootKey } from "../support/test-root-key.ts";
import { managementCall } from "./core-cases.ts";
import { openRawStream } from "./raw-stream.ts";
import { impossibleAsks } from "./strange-asks.ts";
import { charge, impossibleCharges, possibleCharges } from "./strange-charges.ts";
import { impossibleReports, possibleReports } from "./strange-reports.ts";
import { countedKey, sharedSecret, startTestCoordinator } from "./test-coordinator.ts";

/*
 * What someone sends who has the shared secret and is no edge of ours. The root key is the right one, so that nothing is
 * refused because of it.
 */

const digest = "d".repeat(43);

type Position = NonNullable<Extract<Question, { case: "feed" }>["value"]["since"]>;

const lookup = (text: string): Question => ({ case: "lookup", value: { digest: text } });
const feed = (since: Position): Question => ({
  case: "feed",
  value: { since: { epoch: "e", transaction: 1, ...since } },
});
const holders = (by: object): Question => ({ case: "holders", value: { rootKey, ...by } }) as Question;

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
  "a management call": [
    ["an encoding that is not known", managementCall({ encoding: 9 as never })],
    ["no encoding", managementCall({ encoding: 0 })],
    ["a byte too much", managementCall({ body: new Uint8Array(65_537) })],
    ["too long a root key", managementCall({ rootKey: "r".repeat(4097) })],
    ["no method", managementCall({ method: "" })],
    ["a method that is not known", managementCall({ method: "KeysService/Rename" })],
    ["a time that is no number", managementCall({ timeLeftMs: Number.NaN })],
    ["a time that is over", managementCall({ timeLeftMs: -1 })],
    ["a request without an id", managementCall({ requestId: "" })],
    ["an address with a zero character", managementCall({ address: "127.0.0.1\0" })],
    ["a key of no name", holders({})],
    ["a key with an empty id", holders({ by: { case: "keyId", value: "" } })],
    ["a key by half a digest", holders({ by: { case: "digest", value: digest.slice(20) } })],
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
  const ask = (id: number) => other.ask({ id, question: charge(keyId, 1) });
  const remaining = (id: number) => {
    const { case: kind, value } = other.answers.find((answer) => answer.id === id)?.answer ?? {};
    return kind === "charge" ? value : undefined;
  };
  ask(1);
  await vi.waitFor(() => expect(remaining(1)).toMatchObject({ granted: 1, remaining: 4 }), { interval: 5 });
  const asked = [...managed, ...read];
  return { ...coordinator, open, ask, remaining, asked };
}

describe("what no edge of ours sends", () => {
  it.each(Object.entries(impossible))("fails alone and reaches nothing: %s", async (_, calls) => {
    const { open, ask, remaining, asked, charged } = await setUp();
    const stranger = open();
    for (const [at, [, question]] of calls.entries()) {
      if (question === undefined) stranger.send({ calls: [{ id: at + 1 }] });
      else stranger.ask({ id: at + 1, question });
    }
    await vi.waitFor(() => expect(stranger.answers.length).toBe(calls.length), { interval: 5 });
    const kinds = new Map(stranger.answers.map(({ id, answer }) => [id, answer.case]));
    const outcomes = calls.map(([name], id) => [name, kinds.get(id + 1)]);
    expect(outcomes).toEqual(calls.map(([name]) => [name, "unknown"]));
    expect(asked.map((method) => method.mock.calls)).toEqual(asked.map(() => []));
    // Both streams go on.
    stranger.ask({ id: 1000, question: managementCall() });
    await vi.waitFor(() => expect(stranger.answers.at(-1)?.answer.case).toBe("management"), { interval: 5 });
    ask(2);
    await vi.waitFor(() => expect(remaining(2)).toMatchObject({ granted: 1, remaining: 3 }), { interval: 5 });
    expect(charged.map(({ count }) => count)).toEqual([1, 1]);
  });

  it("is a charge whose columns are too short: it fails alone", async () => {
    const { open, charged } = await setUp();
    const stranger = open();
    const column = (...numbers: number[]) => Buffer.from(Int32Array.from(numbers).buffer);
    const columns = { subjects: ["k", "l"], owns: ["", "m"], costs: column(1, 1), counts: column(1) };
    stranger.send({ charges: { ids: column(1, 2, 3), ...columns } });
    await vi.waitFor(() => expect(stranger.answers.length).toBe(3), { interval: 5 });
    expect(new Map(stranger.answers.map(({ id, answer }) => [id, answer.case]))).toEqual(
      new Map([
        [1, "missing"],
        [2, "unknown"],
        [3, "unknown"],
      ]),
    );
    expect(charged.map(({ subject }) => subject)).toEqual([expect.any(String), "k"]);
  });

  it("is none of these", async () => {
    const possible: [string, Question][] = [
      ["a look-up", lookup(digest)],
      ...possibleCharges,
      ...possibleReports,
      ["a management call", managementCall()],
      ["one of a root key that is none", managementCall({ rootKey: "r".repeat(4096) })],
      ["one whose caller waits for a while", managementCall({ timeLeftMs: 5000 })],
      ["as large a body as there may be", managementCall({ body: new Uint8Array(65_536), address: "::1" })],
      ["a key by its id", holders({ by: { case: "keyId", value: "key" } })],
      ["a key by its secret", holders({ by: { case: "digest", value: digest } })],
      ["a root key", { case: "rootKey", value: { rootKey: "r".repeat(4096) } }],
      ["a position", feed({ heartbeat: { reader: "r", count: 1 } })],
    ];
    const { open } = await setUp();
    for (const [name, question] of possible) {
      const stream = open();
      stream.ask({ id: 1, question });
      // Of a counter that is not there.
      const expected = question.case === "charge" ? "missing" : question.case;
      expect([name, (await stream.answered).case]).toEqual([name, expected]);
    }
  });

  it("is not what fails in the coordinator's own code, whatever kind of error that is", async () => {
    const { open, store } = await setUp();
    const edge = open();
    for (const [index, error] of [new RangeError("too long"), new TypeError("not a function")].entries()) {
      vi.spyOn(store.keys, "findByDigest").mockRejectedValueOnce(error);
      const [id, nextId] = [2 * index + 1, 2 * index + 2];
      edge.ask({ id, question: lookup(digest) });
      const answer = (of: number) => edge.answers.find((each) => each.id === of)?.answer;
      const failure = { case: "failure", value: { reason: "the coordinator has failed" } };
      await vi.waitFor(() => expect(answer(id)).toMatchObject(failure), { interval: 5 });
      // The same stream goes on.
      edge.ask({ id: nextId, question: lookup(digest) });
      await vi.waitFor(() => expect(answer(nextId)?.case).toBe("lookup"), { interval: 5 });
    }
  });
});
