import type { StoredOwner } from "../domain/owner.ts";
import type { DeleteOwner } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { pageLimitMax } from "../store/queries.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export interface DeleteOwnerRequest {
  readonly ownerId: string;
  /** What becomes of keys that name the owner. Undefined: there must be none. */
  readonly keys: "keep" | "disable" | "delete" | undefined;
}

/** Nothing has this version: a command with it finds out whether there is no such owner, or whether it was repeated. */
const noVersion = 0;

/** Returns whether there was such an owner. From then on its keys share nothing on this replica. Throws `StateConflict`. */
export async function deleteOwner(
  management: Management,
  request: DeleteOwnerRequest,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const { ownerId, keys } = request;
  const once = { key, request, ...deps };
  for (;;) {
    const owner = keys === "keep" ? undefined : await management.read({ kind: "owner", id: ownerId });
    const ifVersion = keys === "keep" ? undefined : (owner?.version ?? noVersion);
    const event = newEvent(deps);
    if (keys === "disable" || keys === "delete") {
      // None of its keys can be used from here on. A repeated request goes on with the owner that it has begun with.
      const stop = { kind: "stopOwner", id: ownerId, ifVersion, event } as const;
      const outcome = await changeOnce(management, stop, ownerId, { ...once, kept: owner?.createdAtMs });
      if (outcome.outcome === "missing") return false;
      if (outcome.outcome === "repeated") return endOwner(management, request, outcome.kept, deps);
      if (outcome.outcome === "done") return endOwner(management, request, owner?.createdAtMs, deps);
    } else {
      const unless = keys === "keep" ? undefined : { apiIds: owner?.apiIds };
      const command: DeleteOwner = { kind: "deleteOwner", id: ownerId, ifVersion, unless, event };
      const outcome = await changeOnce(management, command, ownerId, once);
      if (outcome.outcome !== "conflict") return outcome.outcome !== "missing";
      if (outcome.reason !== "version") throw new StateConflict(outcome.reason, outcome.keys);
    }
    // It was changed meanwhile.
  }
}

/** Ends its keys, and then the owner, unless another one has been made in its place. Several callers may do so at once. */
async function endOwner(
  management: Management,
  { ownerId, keys }: DeleteOwnerRequest,
  createdAtMs: number | undefined,
  deps: EventDeps,
): Promise<true> {
  for (;;) {
    const owner = await management.read({ kind: "owner", id: ownerId });
    if (owner === undefined || owner.createdAtMs !== createdAtMs) return true;
    const onlyEnabled = keys === "disable" ? { enabled: true as const } : {};
    for (const apiId of owner.apiIds ?? [undefined]) await endKeys(management, owner, { apiId, ...onlyEnabled }, deps);
    const unless = { apiIds: owner.apiIds, ...onlyEnabled };
    const last = { kind: "deleteOwner", id: ownerId, ifVersion: owner.version, unless, event: newEvent(deps) } as const;
    // A conflict: the owner was changed, or a key was made meanwhile.
    if ((await management.change(last)).outcome !== "conflict") return true;
  }
}

/** Disables or deletes keys of the owner, page by page. One that was changed meanwhile is left: it may name another owner. */
async function endKeys(
  management: Management,
  { id: ownerId }: StoredOwner,
  which: { readonly apiId: string | undefined; readonly enabled?: true },
  deps: EventDeps,
): Promise<void> {
  let after: string | undefined;
  do {
    const page = await management.read({ kind: "keys", ownerId, ...which, limit: pageLimitMax, after });
    const ended = page.items.map(({ id, version: ifVersion }) => {
      const change = { id, ifVersion, event: newEvent(deps) };
      return which.enabled
        ? management.change({ kind: "updateKey", changes: { enabled: false }, ...change })
        : management.change({ kind: "deleteKey", ...change });
    });
    await Promise.all(ended);
    after = page.cursor;
  } while (after !== undefined);
}
