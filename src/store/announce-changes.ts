import type { Change, ChangeAudience } from "./changes.ts";
import { type Command, resourceOf, targetIdOf } from "./commands.ts";
import type { Management, Outcome } from "./management.ts";

/**
 * Announces every change of what may be cached somewhere after COMMIT, also one whose outcome is not known, to each of
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
  // Nothing was changed.
  if (outcome?.outcome === "conflict") return [];
  const id = targetIdOf(command);
  const keys =
    outcome?.outcome === "done" ? outcome.changed.map((key) => ({ kind: "key", ...key }) as const) : undefined;
  switch (resourceOf(command)) {
    case "owner":
      // The record stays as it is, as it does while keys of an API are ended.
      if (command.kind === "endOwnerKeys") return keys ?? [];
      // One that is missing too: it may have been deleted by a change whose answer was lost.
      return [{ kind: "owner", ownerId: id, isNew: command.kind === "createOwner" }];
    case "rootKey":
      // No cache knows what is being created.
      return command.kind === "createRootKey" ? [] : [{ kind: "rootKeys" }];
    case "api":
      // While the outcome is unknown, so are the keys that have changed. The change feed reports them.
      return keys ?? [];
    case "key":
      if (command.kind === "createKey") return [];
      if (command.kind === "importKeys") return [{ kind: "imports" }];
      return keys ?? [{ kind: "key", keyId: id, digests: undefined }];
  }
}

/** All together: one after the other, hundreds would each wait for workers and for Redis. One that fails stops no other. */
export async function announceAll(changes: readonly Change[], audiences: readonly ChangeAudience[]): Promise<void> {
  const announced = await Promise.allSettled(changes.map((change) => announce(change, audiences)));
  for (const each of announced) if (each.status === "rejected") throw each.reason;
}

/** One that fails does not keep the change from the others. */
async function announce(change: Change, [first, ...others]: readonly ChangeAudience[]): Promise<void> {
  try {
    await first?.broadcast(change);
  } finally {
    if (others.length > 0) await announce(change, others);
  }
}
