import { toIpRanges } from "../../src/domain/ip-allow.ts";
import type { Key, NewKey } from "../../src/domain/key.ts";
import { limitsOfKey } from "../../src/domain/limits.ts";
import type { RefillRule } from "../../src/domain/usage.ts";
import type { IdempotencyRecord } from "../../src/store/commands.ts";
import { plainKey } from "../support/plain-key.ts";

import type { TestClock } from "../support/test-clock.ts";

let made = 0;

/** A unique key, created now: without optional fields or a counter, except for those given. */
export function sampleKey(clock: TestClock, given: Partial<NewKey> = {}): NewKey {
  made++;
  return {
    id: `key_${made}`,
    apiId: "api_1",
    start: "live_abcd",
    ...plainKey,
    createdAtMs: clock.nowMs(),
    secretDigest: `digest ${made}`,
    ...given,
  };
}

export function refillRule(given: Partial<RefillRule> = {}): RefillRule {
  return { interval: "daily", amount: 10, carryOver: false, ...given };
}

/** The key as a look-up must find it, while there is no record of its owner. */
export function foundAs({ start: _, createdAtMs: __, secretDigest: ___, refill, ...found }: NewKey): Key {
  const { remaining, ...visible } = found;
  const rateLimits = found.rateLimits && limitsOfKey(found.id, found.rateLimits);
  const counter = remaining === undefined ? undefined : { remaining, refillInterval: refill?.interval };
  const ipAllow = found.ipAllow && toIpRanges(found.ipAllow);
  return { ...visible, hasOwnerRecord: false, rateLimits, ipAllow, counter, secretExpiresAtMs: undefined };
}

export const keptForMs = 24 * 60 * 60 * 1000;

export function sampleRecord(clock: TestClock, lookup: string, answer: string): IdempotencyRecord {
  return {
    lookup,
    targetId: `target of ${answer}`,
    requestDigest: `request of ${answer}`,
    sealedAnswer: `sealed ${answer}`,
    createdAtMs: clock.nowMs(),
    expiresAtMs: clock.nowMs() + keptForMs,
  };
}
