import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { KeyMutation } from "../../src/store/key-mutation.ts";
import { deleteKey } from "../../src/usecases/delete-key.ts";
import { inTurn } from "./fakes.ts";

function setUp(answer: readonly string[] | undefined | Error) {
  const mutations: [string, KeyMutation][] = [];
  const answers = inTurn("deletions", [answer]);
  const keys = {
    async mutate(keyId: string, mutation: KeyMutation) {
      mutations.push([keyId, mutation]);
      return answers();
    },
  };
  return { mutations, keys };
}

describe("deleteKey", () => {
  it.each([
    { name: "says that there was such a key", digests: ["digest"], existed: true },
    { name: "says so of a key without a secret, too", digests: [], existed: true },
    { name: "says that there was no such key", digests: undefined, existed: false },
  ])("$name", async ({ digests, existed }) => {
    const { keys, mutations } = setUp(digests);
    expect(await deleteKey(keys, "key_1")).toBe(existed);
    expect(mutations).toEqual([["key_1", { kind: "delete" }]]);
  });

  it("says nothing of the key when the store is away", async () => {
    const away = new Unavailable("away");
    await expect(deleteKey(setUp(away).keys, "key_1")).rejects.toBe(away);
  });
});
