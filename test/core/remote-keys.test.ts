import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AnswerSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import { toWireKey, toWireOwner } from "../../gen/resources/core/wire.ts";
import type { Coordinators } from "../../src/core/remote/coordinators.ts";
import { RemoteKeys } from "../../src/core/remote/remote-keys.ts";
import { limitsOfOwner } from "../../src/domain/limits.ts";
import type { Owner } from "../../src/domain/owner.ts";
import type { FeedNews } from "../../src/store/change-feed.ts";
import type { Change } from "../../src/store/changes.ts";
import { foundAs } from "../contract/sample-keys.ts";
import { deadlineIn } from "../support/deadline-in.ts";
import { realKey } from "./core-cases.ts";

const epoch = "e";
const key = realKey();
const digest = key.secretDigest;
const isOld = [{ kind: "key", keyId: "", digests: [digest] }];
const owner: Owner = {
  id: "an owner",
  enabled: false,
  apiIds: ["api_1"],
  rateLimits: limitsOfOwner("an owner", [{ name: "day", rule: { mode: "strict", limit: 5, durationMs: 1000 } }]),
  counter: { remaining: 7 },
};

/** Look-ups whose answers are as new as the coordinator's feed at this position. `old` are those reported as old. */
function setUp(answered: { transaction: number; epoch?: string }) {
  const old: Change[] = [];
  const gate = Promise.withResolvers<void>();
  const read = async (_: string, { case: asked }: { case: "lookup" | "owner" }) => {
    await gate.promise;
    const asOf = { feedTransaction: answered.transaction, feedEpoch: answered.epoch ?? epoch };
    const found = { lookup: { key: toWireKey(foundAs(key)) }, owner: { owner: toWireOwner(owner) } };
    const answer = { case: asked, value: { ...found[asked], ...asOf } };
    return create(AnswerSchema, { id: 1, answer } as MessageInitShape<typeof AnswerSchema>).answer;
  };
  const coordinators = { read } as unknown as Coordinators;
  const keys = new RemoteKeys({
    coordinators,
    newDeadline: () => deadlineIn(10_000),
    onOldAnswer: (change) => old.push(change),
  });
  return { keys, old, answer: () => gate.resolve() };
}

const news = (transaction: number, digests: string[], of = epoch): FeedNews => ({
  position: { epoch: of, transaction },
  changed: [{ kind: "key", keyId: key.id, digests }],
  hasImportedKeys: false,
  ageMs: 0,
});

/** Asks, hears this news while it waits, and gets its answer. */
async function lookUp(answered: { transaction: number; epoch?: string }, heard: FeedNews[]): Promise<Change[]> {
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
    expect(await lookUp({ transaction: 6 }, [news(7, [digest])])).toEqual(isOld);
    // The last change of several counts.
    expect(await lookUp({ transaction: 6 }, [news(5, [digest]), news(7, [digest])])).toEqual(isOld);
  });

  it("is old if the coordinator's position cannot be compared with the news", async () => {
    expect(await lookUp({ transaction: 9, epoch: "another" }, [news(7, [digest])])).toEqual(isOld);
    expect(await lookUp({ transaction: 0, epoch: "" }, [news(7, [digest])])).toEqual(isOld);
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
    expect(old).toEqual(isOld);
  });

  it("is not compared with news of an earlier feed, whose positions mean nothing now", async () => {
    expect(await lookUp({ transaction: 1 }, [news(7, [digest], "before"), news(1, ["another"])])).toEqual([]);
  });
});

describe("an answer to a look-up of an owner", () => {
  const ofOwner = (transaction: number): FeedNews => ({
    ...news(transaction, []),
    changed: [{ kind: "owner", ownerId: owner.id, isNew: true }],
  });

  it("is what the coordinator has found, and old if it had not read as far as the news of that owner", async () => {
    const isOldOwner = [{ kind: "owner", ownerId: owner.id, isNew: false }];
    for (const [transaction, reported] of [[6, isOldOwner] as const, [7, []] as const]) {
      const { keys, old, answer } = setUp({ transaction });
      const found = keys.findOwner(owner.id);
      keys.onNews(ofOwner(7));
      answer();
      expect(await found).toEqual(owner);
      expect(old).toEqual(reported);
    }
  });

  it("is shared within a turn, and not with a key's", async () => {
    const { keys, answer } = setUp({ transaction: 7 });
    expect(keys.findOwner(digest)).toBe(keys.findOwner(digest));
    expect(keys.findOwner(digest)).not.toBe(keys.findByDigest(digest));
    answer();
  });
});
