// Generated from src/domain/resources.ts. Do not edit.
import type { Key } from "../../../src/domain/key.ts";
import { type Interner, sharedMeta } from "../../../src/store/interner.ts";

/** A cached key. There can be millions of them, so that values which many share are kept once. */
export class CachedKey implements Key {
  readonly id: string;
  readonly apiId: string;
  readonly hasOwnerRecord: boolean;
  readonly counter: Key["counter"];
  readonly ownerId: Key["ownerId"];
  readonly name: Key["name"];
  readonly meta: Key["meta"];
  readonly enabled: Key["enabled"];
  readonly expiresAtMs: Key["expiresAtMs"];
  readonly rateLimit: Key["rateLimit"];
  /* Few keys have one of these: then they are fields of `FullCachedKey`, and the others take no room for them. */
  declare readonly environment: Key["environment"];
  declare readonly rateLimits: Key["rateLimits"];
  declare readonly costMax: Key["costMax"];
  declare readonly permissions: Key["permissions"];
  declare readonly ipAllow: Key["ipAllow"];
  declare readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    this.id = key.id;
    this.apiId = interner.text(key.apiId);
    this.hasOwnerRecord = key.hasOwnerRecord;
    this.counter = key.counter;
    this.ownerId = key.ownerId;
    this.name = key.name;
    this.meta = sharedMeta(key.meta);
    this.enabled = key.enabled;
    this.expiresAtMs = key.expiresAtMs;
    this.rateLimit = key.rateLimit && interner.rule(key.rateLimit);
  }
}

/** A key with something that few have, or one that was found by a secret with an end. */
class FullCachedKey extends CachedKey {
  override readonly environment: Key["environment"];
  override readonly rateLimits: Key["rateLimits"];
  override readonly costMax: Key["costMax"];
  override readonly permissions: Key["permissions"];
  override readonly ipAllow: Key["ipAllow"];
  override readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    super(key, interner);
    this.environment = key.environment && interner.text(key.environment);
    this.rateLimits = key.rateLimits && interner.limits(key.rateLimits);
    this.costMax = key.costMax;
    this.permissions = key.permissions && interner.texts(key.permissions);
    this.ipAllow = key.ipAllow && interner.numbers(key.ipAllow);
    this.secretExpiresAtMs = key.secretExpiresAtMs;
  }
}

export function toCachedKey(key: Key, interner: Interner): CachedKey {
  return isFull(key) ? new FullCachedKey(key, interner) : new CachedKey(key, interner);
}

function isFull(key: Key): boolean {
  return (
    key.environment !== undefined ||
    key.rateLimits !== undefined ||
    key.costMax !== undefined ||
    key.permissions !== undefined ||
    key.ipAllow !== undefined ||
    key.secretExpiresAtMs !== undefined
  );
}
