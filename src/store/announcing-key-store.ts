import type { KeyChanges } from "./key-changes.ts";
import type { KeyStore } from "./key-store.ts";

/** Tells the other replicas of every change and deletion, after COMMIT; also of one whose outcome is not known. */
export function announceChanges(keys: KeyStore, changes: KeyChanges): KeyStore {
  const announced = async (keyId: string, change: Promise<readonly string[] | undefined>) => {
    let digests: readonly string[] | undefined;
    try {
      digests = await change;
      return digests;
    } finally {
      await changes.announce({ keyId, digests });
    }
  };
  return {
    create: keys.create.bind(keys),
    findKeptAnswer: keys.findKeptAnswer.bind(keys),
    findByDigest: keys.findByDigest.bind(keys),
    setRateLimit: (keyId, rateLimit) => announced(keyId, keys.setRateLimit(keyId, rateLimit)),
    delete: (keyId) => announced(keyId, keys.delete(keyId)),
  };
}
