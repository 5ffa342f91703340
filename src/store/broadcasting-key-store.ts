import type { KeyChanges } from "./key-changes.ts";
import type { KeyStore } from "./key-store.ts";

/** Tells the other replicas of every mutation, after COMMIT; also of one whose outcome is not known. */
export function broadcastChanges(keys: KeyStore, changes: KeyChanges): KeyStore {
  return {
    create: keys.create.bind(keys),
    findKeptAnswer: keys.findKeptAnswer.bind(keys),
    findByDigest: keys.findByDigest.bind(keys),
    async mutate(keyId, mutation) {
      let digests: readonly string[] | undefined;
      try {
        digests = await keys.mutate(keyId, mutation);
        return digests;
      } finally {
        await changes.broadcast({ keyId, digests });
      }
    },
  };
}
