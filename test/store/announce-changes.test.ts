import { describe, expect, it } from "vitest";
import type { NewOwner } from "../../src/domain/owner.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { announceChanges } from "../../src/store/announce-changes.ts";
import type { Change } from "../../src/store/changes.ts";
import type { Command } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import { nextTurn } from "../batching/next-turn.ts";
import {
  createKey,
  deleteKey,
  done,
  endOwnerKeys,
  setRateLimit,
  testEvent,
  updateRemaining,
} from "../support/manage.ts";
import { HeldKeyStore } from "./held-key-store.ts";
import { strict } from "./key-cache-fixture.ts";

/** A store with the key `k`, whose changes are announced to a cache and to others. `told` lists who was told what. */
function setUp(cache: (change: Change) => Promise<void> = async () => {}) {
  const store = new HeldKeyStore().add("k");
  const told: [string, string, readonly string[] | undefined][] = [];
  const note = (who: string, change: Change) => {
    if (change.kind === "key") told.push([who, change.keyId, change.digests]);
  };
  const ownCache = {
    async broadcast(change: Change) {
      note("cache", change);
      await cache(change);
    },
  };
  const others = { broadcast: async (change: Change) => note("others", change) };
  return { store, told, keys: announceChanges(store, [ownCache, others]), ownCache, others };
}

describe("announceChanges", () => {
  it.each([
    ["a deletion", (keys: ReturnType<typeof setUp>["keys"]) => deleteKey(keys, "id of k")],
    ["a change", (keys: ReturnType<typeof setUp>["keys"]) => setRateLimit(keys, "id of k", strict)],
  ])("tells of %s with its digests: the own cache first, then others", async (_, mutate) => {
    const { keys, told } = setUp();
    expect(await mutate(keys)).toEqual(["k"]);
    expect(told).toEqual([
      ["cache", "id of k", ["k"]],
      ["others", "id of k", ["k"]],
    ]);
  });

  it("answers a change only when the own cache has forgotten the key", async () => {
    const forgotten = Promise.withResolvers<void>();
    const { keys, told } = setUp(() => forgotten.promise);
    let isAnswered = false;
    const answered = deleteKey(keys, "id of k").then(() => {
      isAnswered = true;
    });
    await nextTurn();
    expect([isAnswered, told.length]).toEqual([false, 1]);
    forgotten.resolve();
    await answered;
    expect(told).toHaveLength(2);
  });

  it("tells of a key that was not there, and passes on that it was not: a lost deletion may be repeated", async () => {
    const { keys, told } = setUp();
    expect(await deleteKey(keys, "id of nobody")).toBeUndefined();
    expect(told.map(([, , digests]) => digests)).toEqual([undefined, undefined]);
  });

  it("tells of a change whose outcome is not known, as one under unknown digests", async () => {
    const { store, told, ownCache, others } = setUp();
    const away = new Unavailable("the reply was lost");
    const failing = Object.assign(store, { change: () => Promise.reject(away) });
    await expect(deleteKey(announceChanges(failing, [ownCache, others]), "id of k")).rejects.toBe(away);
    expect(told).toEqual([
      ["cache", "id of k", undefined],
      ["others", "id of k", undefined],
    ]);
  });

  it("tells others also if the own cache fails, and then does not acknowledge the change", async () => {
    const stuck = new Unavailable("a thread does not answer");
    const { keys, told } = setUp(() => Promise.reject(stuck));
    await expect(deleteKey(keys, "id of k")).rejects.toBe(stuck);
    expect(told.map(([who]) => who)).toEqual(["cache", "others"]);
  });

  it("tells nothing of a refused change, which has changed nothing", async () => {
    const { store, told, ownCache, others } = setUp();
    const refused: Outcome = { outcome: "conflict", reason: "belowZero" };
    const refusing = Object.assign(store, { change: async () => refused });
    const { change } = announceChanges(refusing, [ownCache, others]);
    expect(await updateRemaining({ change }, "id of k", "decrement", 1)).toBe(refused);
    expect(told).toEqual([]);
  });

  describe("of an owner", () => {
    const event = testEvent();
    const commands: Command[] = [
      { kind: "createOwner", created: { id: "o" } as NewOwner, event },
      { kind: "updateOwner", id: "o", changes: {}, event },
      { kind: "updateOwnerRemaining", id: "o", op: "set", value: 1, event },
      { kind: "deleteOwner", id: "o", event },
    ];

    it.each(commands)("tells of $kind, also where its outcome is missing, repeated or unknown", async (command) => {
      const record = { targetId: "o", requestDigest: "r", sealedAnswer: "s" };
      const away = new Unavailable("the reply was lost");
      const outcomes: (Outcome | Unavailable)[] = [
        done,
        { outcome: "missing" },
        { outcome: "repeated", record },
        { outcome: "conflict", reason: "version" },
        away,
      ];
      const told = [];
      for (const outcome of outcomes) {
        const { store } = setUp();
        const heard: Change[] = [];
        const change = () => (outcome === away ? Promise.reject(away) : Promise.resolve(outcome));
        const audience = { broadcast: async (change: Change) => void heard.push(change) };
        const changing = announceChanges(Object.assign(store, { change }), [audience]).change(command);
        expect(await changing.catch((error) => error)).toBe(outcome);
        told.push(heard);
      }
      const change = { kind: "owner", ownerId: "o", isNew: command.kind === "createOwner" };
      expect(told).toEqual([[change], [change], [change], [], [change]]);
    });
  });

  it("reports the keys that were ended with an owner, and nothing while that is not known", async () => {
    const { store, told, ownCache, others } = setUp();
    const changed = ["a", "b"].map((keyId) => ({ keyId, digests: [`digest of ${keyId}`] }));
    const outcomes: Outcome[] = [{ outcome: "done", changed }, { outcome: "missing" }];
    for (const outcome of outcomes) {
      const ending = announceChanges(Object.assign(store, { change: async () => outcome }), [ownCache, others]);
      await endOwnerKeys(ending, "o", { how: "delete" });
    }
    expect(told.filter(([who]) => who === "cache")).toEqual(
      changed.map(({ keyId, digests }) => ["cache", keyId, digests]),
    );
    expect(told).toHaveLength(4);
  });

  it("tells nothing of a new key, which no cache can know", async () => {
    const { store, keys, told } = setUp();
    expect(await createKey(keys, store.newKey("new"))).toEqual(done);
    expect([store.created, told]).toEqual([["id of new"], []]);
  });
});
