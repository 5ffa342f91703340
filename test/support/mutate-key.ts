import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { KeyManagement } from "../../src/store/key-store.ts";

/* The mutations of a key as calls. */

type Keys = Pick<KeyManagement, "mutate">;
type Digests = ReturnType<KeyManagement["mutate"]>;

export function deleteKey(keys: Keys, keyId: string): Digests {
  return keys.mutate(keyId, { kind: "delete" });
}

export function setRateLimit(keys: Keys, keyId: string, rateLimit: RateLimit | undefined): Digests {
  return keys.mutate(keyId, { kind: "setRateLimit", rateLimit });
}
