import type { Change, ChangeAudience } from "./changes.ts";
import { type Command, type Management, type Outcome, targetIdOf } from "./management.ts";

/**
 * Announces every change of what may be remembered somewhere after COMMIT, also one whose outcome is not known, to each of
 * these in their order. The caches of this process come first: when a change is answered, none of them serves what was
 * changed as it was.
 */
export function announceChanges(management: Management, audiences: readonly ChangeAudience[]): Management {
  return {
    read: (query) => management.read(query),
    async change(command, idempotency) {
      let changed = changesOf(command, undefined);
      try {
        const outcome = await management.change(command, idempotency);
        changed = changesOf(command, outcome);
        return outcome;
      } finally {
        await announceAll(changed, audiences);
      }
    },
  };
}

/** What the command may have changed. `outcome` is undefined while it is not known. */
function changesOf(command: Command, outcome: Outcome<Command["kind"]> | undefined): readonly Change[] {
  if (outcome?.outcome === "conflict") return [];
  switch (command.kind) {
    // No cache knows what is being created.
    case "createKey":
    case "createRootKey":
      return [];
    case "updateRootKey":
    case "revokeRootKey":
      return [{ kind: "rootKeys" }];
  }
  // One that is missing too: it may have been deleted by a change whose answer was lost.
  if (outcome?.outcome !== "done") return [{ kind: "key", keyId: targetIdOf(command), digests: undefined }];
  return outcome.changed.map((change) => ({ kind: "key", ...change }));
}

/** One that fails does not keep the others from being told. */
async function announceAll([first, ...others]: readonly Change[], audiences: readonly ChangeAudience[]): Promise<void> {
  if (first === undefined) return;
  try {
    await announce(first, audiences);
  } finally {
    await announceAll(others, audiences);
  }
}

/** One that fails does not keep the change from the others. */
async function announce(change: Change, [first, ...others]: readonly ChangeAudience[]): Promise<void> {
  try {
    await first?.broadcast(change);
  } finally {
    if (others.length > 0) await announce(change, others);
  }
}
