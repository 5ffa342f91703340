import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  KeyCreation,
  KeyCreationSchema,
  KeySchema,
  RateLimitSchema,
  Key as WireKey,
  KeyMutation as WireMutation,
  RateLimit as WireRateLimit,
} from "../../gen/latchkey/core/v1/core_pb.js";
import type { JsonObject, Key, NewKey } from "../domain/key.ts";
import { isDeeperThan, metaBytesMax, metaDepthMax } from "../domain/meta.ts";
import { isRateLimit, type RateLimit } from "../domain/rate-limit.ts";
import { type RefillRule, remainingMax } from "../domain/usage.ts";
import { type KeyMutation, readMutation } from "../store/key-mutation.ts";
import type { IdempotencyRecord } from "../store/key-store.ts";
import { InvalidMessage } from "./wire.ts";

/*
 * Keys as they go over the internal streams. A coordinator checks what an edge sends as a public method checks its caller:
 * what is stored here is answered to others, and what a database cannot take would fail for others too.
 */

const digestPattern = /^[A-Za-z0-9_-]{43}$/;
const textMax = 255;
/** An answer to createKey, encrypted: the secret of a key with 255 random bytes, and its id. */
const sealedMax = 4096;
const latestMs = 253_402_300_799_999;

export function toWireKey(
  key: Omit<Key, "counter">,
  remaining: number | undefined,
): MessageInitShape<typeof KeySchema> {
  const { id, apiId, ownerId, name, meta, enabled, expiresAtMs, rateLimit } = key;
  const text = JSON.stringify(meta);
  return {
    id,
    apiId,
    ownerId,
    name,
    metaJson: text === "{}" ? "" : text,
    enabled,
    expiresAtMs,
    rateLimit: rateLimit && toWireRateLimit(rateLimit),
    remaining,
  };
}

/** As a coordinator has sent it: it is believed. */
export function fromWireKey(key: WireKey, meta = readMeta(key.metaJson)): Key {
  const { id, apiId, ownerId, name, enabled, expiresAtMs, rateLimit, remaining } = key;
  return {
    id,
    apiId,
    ownerId,
    name,
    meta,
    enabled,
    expiresAtMs,
    rateLimit: rateLimit && fromWireRateLimit(rateLimit),
    counter: remaining === undefined ? undefined : { remaining },
  };
}

export function toWireCreation(
  rootKey: string,
  key: NewKey,
  idempotency: IdempotencyRecord | undefined,
): MessageInitShape<typeof KeyCreationSchema> {
  const { secretDigest: digest, start, createdAtMs, refill, remaining } = key;
  const properties = { key: toWireKey(key, remaining), digest, start, createdAtMs };
  return { rootKey, ...properties, ...(refill && { refill }), ...(idempotency && { idempotency }) };
}

/** Throws on what no edge of ours sends. */
export function fromWireCreation(creation: KeyCreation): {
  readonly key: NewKey;
  readonly idempotency: IdempotencyRecord | undefined;
} {
  const { key: wireKey, digest, start, createdAtMs, refill, idempotency } = creation;
  if (wireKey === undefined) throw impossible("key");
  const { counter, ...key } = fromWireKey(wireKey, readCheckedMeta(wireKey.metaJson));
  checkKeyId(key.id);
  checkText("apiId", key.apiId);
  if (key.ownerId !== undefined) checkText("ownerId", key.ownerId);
  if (key.name !== undefined) checkText("name", key.name);
  checkText("start", start);
  checkDigest(digest);
  if (key.expiresAtMs !== undefined) checkNumber("expiresAtMs", key.expiresAtMs, 1, latestMs);
  checkNumber("createdAtMs", createdAtMs, 0, latestMs);
  if (key.rateLimit !== undefined && !isRateLimit(key.rateLimit)) throw impossible("rate limit");
  if (counter !== undefined) checkNumber("remaining", counter.remaining, 0, remainingMax);
  return {
    key: {
      ...key,
      secretDigest: digest,
      start,
      createdAtMs,
      remaining: counter?.remaining,
      refill: refill && checkRefill(refill, counter !== undefined),
    },
    idempotency: idempotency && checkIdempotency(idempotency),
  };
}

/** Throws on what no edge of ours sends. Which mutations there are is known where they are defined. */
export function fromWireMutation({ mutationJson }: WireMutation): KeyMutation {
  const mutation = readMutation(mutationJson);
  if (mutation === undefined) throw impossible("mutation");
  return mutation;
}

export function checkDigest(digest: string): void {
  if (!digestPattern.test(digest)) throw impossible("digest");
}

export function checkKeyId(keyId: string): void {
  checkText("key id", keyId);
}

function toWireRateLimit({ mode, limit, durationMs }: RateLimit): MessageInitShape<typeof RateLimitSchema> {
  return { strict: mode === "strict", limit, durationMs };
}

function fromWireRateLimit({ strict, limit, durationMs }: WireRateLimit): RateLimit {
  return { mode: strict ? "strict" : "local", limit, durationMs };
}

function checkRefill(
  refill: { interval: string; amount: number; carryOver: boolean },
  hasCounter: boolean,
): RefillRule {
  const { interval, amount, carryOver } = refill;
  if (!hasCounter || (interval !== "daily" && interval !== "monthly")) throw impossible("refill");
  checkNumber("refill amount", amount, 1, remainingMax);
  return { interval, amount, carryOver };
}

function checkIdempotency(record: IdempotencyRecord): IdempotencyRecord {
  const { lookup, requestDigest, sealedAnswer, createdAtMs, expiresAtMs } = record;
  checkDigest(lookup);
  checkDigest(requestDigest);
  if (!/^[A-Za-z0-9_-]+$/.test(sealedAnswer) || sealedAnswer.length > sealedMax) throw impossible("sealed answer");
  checkNumber("createdAtMs", createdAtMs, 0, latestMs);
  checkNumber("expiresAtMs", expiresAtMs, createdAtMs, latestMs);
  return { lookup, requestDigest, sealedAnswer, createdAtMs, expiresAtMs };
}

/** Throws a `SyntaxError` for what is not JSON. */
function readMeta(text: string): JsonObject {
  return text === "" ? {} : (JSON.parse(text) as JsonObject);
}

function readCheckedMeta(text: string): JsonObject {
  if (Buffer.byteLength(text) > metaBytesMax) throw impossible("meta");
  let meta: unknown;
  try {
    meta = readMeta(text);
  } catch {
    throw impossible("meta");
  }
  const isObject = typeof meta === "object" && meta !== null && !Array.isArray(meta);
  if (!isObject || isDeeperThan(metaDepthMax, meta as JsonObject)) throw impossible("meta");
  return meta as JsonObject;
}

/** Postgres cannot store a zero character. */
function checkText(name: string, text: string): void {
  if (text.length === 0 || [...text].length > textMax || text.includes("\0")) throw impossible(name);
}

function checkNumber(name: string, number: number, min: number, max: number): void {
  if (!Number.isSafeInteger(number) || number < min || number > max) throw impossible(name);
}

function impossible(name: string): InvalidMessage {
  return new InvalidMessage(`an impossible ${name}`);
}
