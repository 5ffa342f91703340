import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AnswerSchema } from "../../gen/latchkey/core/v1/core_pb.js";
import type { Coordinators } from "../../src/core/remote/coordinators.ts";
import { RemoteKeys } from "../../src/core/remote/remote-keys.ts";
import { toWireKey } from "../../src/core/wire-keys.ts";
import type { FeedNews } from "../../src/store/change-feed.ts";
import { foundAs } from "../contract/sample-keys.ts";
import { realKey } from "./core-cases.ts";

const epoch = "e";
const key = realKey();
const digest = key.secretDigest;

/** Look-ups whose answers are as new as the coordinator's feed at this position. `old` are those reported as old. */
function setUp(answered: { transaction: number; epoch?: string }) {
  const old: string[] = [];
  const gate = Promise.withResolvers<void>();
  const read = async () => {
    await gate.promise;
    const value = {
      key: toWireKey(foundAs(key)),
      feedTransaction: answered.transaction,
      feedEpoch: answered.epoch ?? epoch,
    };
    return create(AnswerSchema, { id: 1, answer: { case: "lookup", value } }).answer;
  };
  const coordinators = { read } as unknown as Coordinators;
  const keys = new RemoteKeys({ coordinators, timeoutMs: () => 10_000, onOldAnswer: (of) => old.push(of) });
  return { keys, old, answer: () => gate.resolve() };
}

const news = (transaction: number, digests: string[], of = epoch): FeedNews => ({
  position: { epoch: of, transaction },
  changed: [{ kind: "key", keyId: key.id, digests }],
  hasImportedKeys: false,
  ageMs: 0,
});

/** Asks, hears this news while it waits, and gets its answer. */
async function lookUp(answered: { transaction: number; epoch?: string }, heard: FeedNews[]): Promise<string[]> {
  const { keys, old, answer } = setUp(answered);
  const found = keys.findByDigest(digest);
  for (const each of heard) keys.onNews(each);
  answer();
  // An old answer is an answer all the same: its caller asked before the change was known here.
  expect(await found).toMatchObject({ id: key.id });
  return old;
}

describe("an answer to a look-up", () => {
  it("is old if the coordinator had not read as far as the news of that key", async () => {
    expect(await lookUp({ transaction: 6 }, [news(7, [digest])])).toEqual([digest]);
    // The last change of several counts.
    expect(await lookUp({ transaction: 6 }, [news(5, [digest]), news(7, [digest])])).toEqual([digest]);
  });

  it("is old if the coordinator's position cannot be compared with the news", async () => {
    expect(await lookUp({ transaction: 9, epoch: "another" }, [news(7, [digest])])).toEqual([digest]);
    expect(await lookUp({ transaction: 0, epoch: "" }, [news(7, [digest])])).toEqual([digest]);
  });

  it("is not old if the coordinator had read that news, or the news was of other keys", async () => {
    expect(await lookUp({ transaction: 7 }, [news(7, [digest])])).toEqual([]);
    expect(await lookUp({ transaction: 6 }, [news(7, ["another"])])).toEqual([]);
    expect(await lookUp({ transaction: 0, epoch: "" }, [])).toEqual([]);
  });

  it("is compared also with news that came before the question", async () => {
    const { keys, old, answer } = setUp({ transaction: 6 });
    keys.onNews(news(7, [digest]));
    answer();
    await keys.findByDigest(digest);
    expect(old).toEqual([digest]);
  });

  it("is not compared with news of an earlier feed, whose positions mean nothing now", async () => {
    expect(await lookUp({ transaction: 1 }, [news(7, [digest], "before"), news(1, ["another"])])).toEqual([]);
  });
});
