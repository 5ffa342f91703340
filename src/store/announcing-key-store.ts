import type { KeyChanges } from "./key-changes.ts";
import type { KeyStore } from "./key-store.ts";

/** Tells the other replicas of every deletion, after COMMIT; also of one whose outcome is not known. */
export function announceChanges(keys: KeyStore, changes: KeyChanges): KeyStore {
  return {
    create: keys.create.bind(keys),
    findByDigest: keys.findByDigest.bind(keys),
    async delete(keyId) {
      let digests: readonly string[] | undefined;
      try {
        digests = await keys.delete(keyId);
        return digests;
      } finally {
        await changes.announce({ keyId, digests });
      }
    },
  };
}
