import type { KeyChange, KeyChanges } from "./key-changes.ts";
import { keyIdOf, type Management } from "./management.ts";

/**
 * Announces every change of an existing key after COMMIT, also one whose outcome is not known, to each of these in their
 * order. The caches of this process come first: when a change is answered, none of them serves the key as it was.
 */
export function announceChanges(management: Management, audiences: readonly KeyChanges[]): Management {
  return {
    read: (query) => management.read(query),
    async change(command, idempotency) {
      // No cache knows a key that is being created.
      if (command.kind === "createKey") return management.change(command, idempotency);
      let changed: readonly KeyChange[] = [{ keyId: keyIdOf(command), digests: undefined }];
      try {
        const outcome = await management.change(command, idempotency);
        if (outcome.outcome === "done") changed = outcome.changed;
        if (outcome.outcome === "conflict") changed = [];
        return outcome;
      } finally {
        await announceAll(changed, audiences);
      }
    },
  };
}

/** One that fails does not keep the others from being told. */
async function announceAll([first, ...others]: readonly KeyChange[], audiences: readonly KeyChanges[]): Promise<void> {
  if (first === undefined) return;
  try {
    await announce(first, audiences);
  } finally {
    await announceAll(others, audiences);
  }
}

/** One that fails does not keep the change from the others. */
async function announce(change: KeyChange, [first, ...others]: readonly KeyChanges[]): Promise<void> {
  try {
    await first?.broadcast(change);
  } finally {
    if (others.length > 0) await announce(change, others);
  }
}
