import type { DeleteOwner } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { endKeys } from "./end-keys.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { noVersion } from "./manage-resource.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export interface DeleteOwnerRequest {
  readonly ownerId: string;
  /** What becomes of keys that name the owner. Undefined: there must be none. */
  readonly keys: "keep" | "disable" | "delete" | undefined;
}

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
      const outcome = await changeOnce(management, stop, { ...once, kept: owner?.createdAtMs });
      if (outcome.outcome === "missing") return false;
      if (outcome.outcome === "repeated") return endOwner(management, request, outcome.kept, deps);
      if (outcome.outcome === "done") return endOwner(management, request, owner?.createdAtMs, deps);
    } else {
      const unless = keys === "keep" ? undefined : { apiIds: owner?.apiIds };
      const command: DeleteOwner = { kind: "deleteOwner", id: ownerId, ifVersion, unless, event };
      const outcome = await changeOnce(management, command, once);
      if (outcome.outcome !== "conflict") return outcome.outcome !== "missing";
      if (outcome.reason !== "version") throw new StateConflict(outcome.reason, outcome.keys);
    }
    // It was changed meanwhile.
  }
}

/** Ends its keys, and then the owner, unless another one has been made in its place. Several callers may do so at the same time. */
async function endOwner(
  management: Management,
  { ownerId: id, keys }: DeleteOwnerRequest,
  createdAtMs: number | undefined,
  deps: EventDeps,
): Promise<true> {
  const how = keys === "disable" ? "disable" : "delete";
  for (;;) {
    const owner = await management.read({ kind: "owner", id });
    if (owner === undefined || owner.createdAtMs !== createdAtMs) return true;
    const { version: ifVersion, apiIds } = owner;
    for (const apiId of apiIds ?? [undefined]) {
      await endKeys(management, { kind: "endOwnerKeys", id, madeAtMs: createdAtMs, apiId, how }, deps);
    }
    const unless = { apiIds, ...(how === "disable" && { enabled: true }) };
    const last = { kind: "deleteOwner", id, ifVersion, unless, event: newEvent(deps) } as const;
    // A conflict: the owner was changed, or a key was made meanwhile.
    if ((await management.change(last)).outcome !== "conflict") return true;
  }
}
