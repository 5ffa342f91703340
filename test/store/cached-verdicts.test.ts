import { describe, expect, it } from "vitest";
import { type RootKeyVerdict, unlimitedRootKey } from "../../src/domain/root-key.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { CachedVerdicts } from "../../src/store/cached-verdicts.ts";
import { TestClock } from "../support/test-clock.ts";

const ttlMs = 60_000;
const rootKey = new Secret("root key");
const verdict = unlimitedRootKey("root_1");

/** A cache over root keys that are answered when the test says so. `asked` are those that were asked for. */
function setUp(options: { ttlMs?: number } = {}) {
  const clock = new TestClock();
  const asked: string[] = [];
  const answers: ((verdict: RootKeyVerdict | undefined) => void)[] = [];
  const cache = new CachedVerdicts(
    (presented) => {
      asked.push(presented.reveal());
      return new Promise((resolve) => answers.push(resolve));
    },
    options.ttlMs ?? ttlMs,
    clock,
  );
  cache.newsIsCurrent(clock.monotonicMs());
  const answerNext = (answer: RootKeyVerdict | undefined) => answers.shift()?.(answer);
  const learn = async (answer: RootKeyVerdict | undefined, presented = rootKey) => {
    const checked = cache.check(presented);
    answerNext(answer);
    return checked;
  };
  return { clock, cache, asked, answerNext, learn };
}

describe("what is remembered of root keys", () => {
  it("is answered synchronously, without asking again", async () => {
    const { cache, asked, learn } = setUp();
    expect(await learn(verdict)).toBe(verdict);
    expect(cache.check(rootKey)).toBe(verdict);
    expect(asked).toHaveLength(1);
  });

  it("is of each root key by itself, and of wrong ones nothing", async () => {
    const { cache, asked, learn } = setUp();
    await learn(verdict);
    const wrong = new Secret("wrong");
    expect(await learn(undefined, wrong)).toBeUndefined();
    expect(await learn(undefined, wrong)).toBeUndefined();
    expect(asked).toEqual(["root key", "wrong", "wrong"]);
    expect(cache.check(rootKey)).toBe(verdict);
  });

  it.each<[string, (cache: CachedVerdicts) => void, boolean]>([
    ["root keys change", (cache) => cache.invalidate({ kind: "rootKeys" }), true],
    ["anything may have changed", (cache) => cache.invalidateAll(), true],
    ["a key changes", (cache) => cache.invalidate({ kind: "key", keyId: "k", digests: undefined }), false],
  ])("when %s is forgotten or not, as it must be", async (_, happens, isForgotten) => {
    const { cache, learn } = setUp();
    await learn(verdict);
    happens(cache);
    expect(cache.check(rootKey) instanceof Promise).toBe(isForgotten);
  });

  it("does not include what was asked before a change and answered after it", async () => {
    const { cache, asked, answerNext } = setUp();
    const before = cache.check(rootKey);
    cache.invalidate({ kind: "rootKeys" });
    answerNext(verdict);
    expect(await before).toBe(verdict);
    const after = cache.check(rootKey);
    answerNext(undefined);
    expect(await after).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  it("is served while news of changes is current, and a while longer", async () => {
    const { clock, cache, learn } = setUp();
    await learn(verdict);
    clock.advance(ttlMs - 1);
    expect(cache.check(rootKey)).toBe(verdict);
    clock.advance(1);
    expect(cache.check(rootKey)).toBeInstanceOf(Promise);
    cache.newsIsCurrent(clock.monotonicMs());
    expect(cache.check(rootKey)).toBe(verdict);
  });

  it("is nothing while the cache is turned off", async () => {
    const { cache, learn } = setUp({ ttlMs: 0 });
    await learn(verdict);
    expect(cache.check(rootKey)).toBeInstanceOf(Promise);
  });

  it("is bounded: the first to be learnt makes room", async () => {
    const { cache, learn } = setUp();
    for (let i = 0; i <= 10_000; i++) await learn(verdict, new Secret(`root key ${i}`));
    expect(cache.check(new Secret("root key 0"))).toBeInstanceOf(Promise);
    expect(cache.check(new Secret("root key 1"))).toBe(verdict);
  });

  it("is not changed by a failure", async () => {
    const away = new Unavailable("away");
    const cache = new CachedVerdicts(() => Promise.reject(away), ttlMs, new TestClock());
    await expect(cache.check(rootKey)).rejects.toBe(away);
  });
});
