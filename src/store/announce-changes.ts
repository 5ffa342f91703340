import type { KeyChange, KeyChanges } from "./key-changes.ts";
import type { KeyManagement } from "./key-store.ts";

/**
 * Announces every mutation after COMMIT, also one whose outcome is not known, to each of these in their order. The
 * caches of this process come first: when a mutation is answered, none of them serves the key as it was.
 */
export function announceChanges(keys: KeyManagement, audiences: readonly KeyChanges[]): KeyManagement {
  return {
    create: keys.create.bind(keys),
    findKeptAnswer: keys.findKeptAnswer.bind(keys),
    async mutate(keyId, mutation) {
      let digests: readonly string[] | undefined;
      try {
        digests = await keys.mutate(keyId, mutation);
        return digests;
      } finally {
        await announce({ keyId, digests }, audiences);
      }
    },
  };
}

/** One that fails does not keep the change from the others. */
async function announce(change: KeyChange, [first, ...others]: readonly KeyChanges[]): Promise<void> {
  try {
    await first?.broadcast(change);
  } finally {
    if (others.length > 0) await announce(change, others);
  }
}
