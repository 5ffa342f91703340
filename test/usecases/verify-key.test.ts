import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Key, LastKnownBalance } from "../../src/domain/key.ts";
import { Secret } from "../../src/domain/secret.ts";
import { createVerifyKey } from "../../src/usecases/verify-key.ts";
import { TestClock } from "../support/test-clock.ts";
import { costCases } from "./cost-cases.ts";
import { type Answering, fakeParts, type Script } from "./fakes.ts";
import { ownerCases } from "./owner-cases.ts";
import { restrictedCases } from "./restricted-cases.ts";
import { undecided } from "./undecided-cases.ts";
import { away, both, counting, decided, nowMs, outOfDate, plain, secret } from "./verify-key-cases.ts";

const modes: { how: string; answering: Answering }[] = [
  { how: "at once", answering: (answer) => answer() },
  { how: "later", answering: async (answer) => answer() },
];

/** Of each refusal, where its case does not tell another. */
const reasons: Readonly<Record<string, object>> = {
  FORBIDDEN: { check: "api" },
  DISABLED: { check: "enabled", of: "key" },
  EXPIRED: { check: "expiry" },
  RATE_LIMITED: { check: "limit", of: "key" },
  USAGE_EXCEEDED: { check: "counter", of: "key" },
};

function setUp(script: Script, answering: Answering, clock = new TestClock(nowMs)) {
  const { did, ...parts } = fakeParts(script, answering);
  const deps = { ...parts, clock };
  const verifyKey = createVerifyKey(deps);
  return {
    did,
    verify: (key = secret, apiId?: string, asked = {}) => verifyKey({ key: new Secret(key), apiId, ...asked }),
  };
}

describe.each(modes)("verifyKey, where store and limiter answer $how:", ({ answering }) => {
  it.each([...decided, ...restrictedCases, ...costCases, ...ownerCases, ...counting, ...outOfDate, ...undecided])(
    "$name",
    async (given) => {
      // One run must not see what another wrote into a key.
      const found = given.found.map(cloneOf);
      const owners = given.owners?.map(cloneOf);
      const script = { ...given, found, ...(owners && { owners }) };
      const { did, verify } = setUp(script, answering);
      const verdict = await settled(() => verify(given.presented, given.apiId, given.asked));

      if (given.verdict instanceof Error) expect(verdict).toStrictEqual(given.verdict);
      else {
        const expected = { reason: reasons[given.verdict.code], ...given.verdict };
        const { rateLimit: stands, rateLimits, ownerRateLimits, ...rest } = expected;
        const limits = expect.objectContaining({
          rateLimit: stands && expect.objectContaining(stands),
          rateLimits: rateLimits && expect.objectContaining(rateLimits),
          ownerRateLimits: ownerRateLimits && expect.objectContaining(ownerRateLimits),
        });
        const whole = { ownerRemaining: undefined, ...rest, key: script.found.at(-1), owner: owners?.at(-1), limits };
        expect(verdict).toEqual("rateLimit" in given.verdict ? whole : rest);
      }
      expect(did).toEqual(given.did);
      if (given.balance !== undefined) expect((script.found[0] as Key).counter).toEqual({ remaining: given.balance });
    },
  );
});

describe("verifyKey", () => {
  it.each([...decided, ...restrictedCases])("makes no promise where nothing has to be waited for: $name", (given) => {
    const { verify } = setUp(given, (answer) => answer());
    expect(verify(given.presented, given.apiId, given.asked)).not.toBeInstanceOf(Promise);
  });

  it("refuses a key that expires while it is looked up", async () => {
    const clock = new TestClock(nowMs);
    const expiring = { ...plain, expiresAtMs: clock.nowMs() + 1 };
    const late: Answering = async (answer) => {
      clock.advance(1);
      return answer();
    };
    expect(await setUp({ found: [expiring] }, late, clock).verify()).toMatchObject({ code: "EXPIRED" });
  });

  it("does not fail before the permit of a use that is not known to be spent is released", async () => {
    const order: string[] = [];
    const script: Script = { found: [both()], permits: ["admitted"], spends: [away] };
    const slowly: Answering = async (answer) => {
      const answered = answer();
      await nextTurn();
      order.push("answered");
      return answered;
    };
    await settled(() => setUp(script, slowly).verify()).then(() => order.push("told"));
    expect(order).toEqual(["answered", "answered", "answered", "told"]);
  });

  it("shows the balance that refused, whatever it becomes while the permit is given back", async () => {
    const key = both();
    const meanwhile: Answering = async (answer) => {
      const answered = answer();
      if (did.at(-1) === "release") (key.counter as LastKnownBalance).remaining = 60;
      return answered;
    };
    const script: Script = { found: [key], permits: ["admitted"], spends: [{ outcome: "exhausted", remaining: 0 }] };
    const { did, verify } = setUp(script, meanwhile);
    expect(await verify()).toMatchObject({ code: "USAGE_EXCEEDED", remaining: 0 });
    expect(key.counter).toEqual({ remaining: 60 });
  });
});

function cloneOf<Answer>(answer: Answer): Answer {
  return answer instanceof Error ? answer : structuredClone(answer);
}

/** The outcome of a call: its answer, or the error that it throws or rejects with. */
async function settled(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}
