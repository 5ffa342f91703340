import type { NewApi } from "../domain/api.ts";
import type { PartsOf } from "../domain/fields.ts";
import type { NewOwner } from "../domain/owner.ts";
import { areWhole, completeChanges, IncompleteRule } from "../domain/partial-changes.ts";
import { type Resource, resources } from "../domain/resources.ts";
import { Forbidden } from "../domain/root-key.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { type Command, type CounterChange, resourceOf } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import type { StoredResources } from "../store/queries.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export type { CounterChange };

/*
 * What is done with every resource in the same way. Each answers undefined or false if there is no such thing, and throws
 * `StateConflict` if what is stored does not allow it, `IdempotencyConflict` and `Forbidden`.
 */

/** Callers' names of the ids, by which a repeated request is recognised, also after an upgrade. */
const idNames = { key: "keyId", owner: "ownerId", api: "apiId", rootKey: "rootKeyId" } as const;

function asNamed(resource: Resource, { id, ...request }: { readonly id: string }): object {
  return { [idNames[resource]]: id, ...request };
}

const updates = { key: "updateKey", owner: "updateOwner", api: "updateApi", rootKey: "updateRootKey" } as const;

interface UpdateRequest<Of extends Resource> {
  readonly id: string;
  readonly ifVersion: number | undefined;
  readonly changes: PartsOf<(typeof resources)[Of]>;
}

/** Answers it as it is then. Throws `IncompleteRule`. */
export async function updateResource<Of extends Resource>(
  management: Management,
  resource: Of,
  request: UpdateRequest<Of>,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredResources[Of] | undefined> {
  const { id, ifVersion } = request;
  const fields = resources[resource];
  const event = newEvent(deps);
  const parts = notBefore(event.atMs, request.changes);
  const read = () => management.read({ kind: resource as Resource, id }) as Promise<StoredResources[Of] | undefined>;
  const change = (changes: object, version: number | undefined) => {
    const command = { kind: updates[resource], id, ifVersion: version, changes, event } as Command;
    return changeOnce(management, command, { key, request: asNamed(resource, request), ...deps });
  };
  const outcome = await (areWhole(fields, parts)
    ? change(completeChanges(fields, parts, {}), ifVersion)
    : changeInPart(ifVersion, read, (stored) => completeChanges(fields, parts, fieldsOf(stored)), change));
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  if (outcome.outcome === "repeated") return read();
  return outcome.outcome === "done" ? (outcome.answer as StoredResources[Of]) : undefined;
}

/** Each try after the first means that somebody else has made a change meanwhile. */
const triesMax = 50;

/** Nothing has this version, so a command with it changes nothing. It still finds what is missing, or was done before. */
export const noVersion = 0;

/**
 * Makes a change that says only a part of a rule: completed by what is stored, and only if that is still stored then. If it
 * was changed meanwhile, it is read again, unless the caller has asked for a version. Throws `IncompleteRule`.
 */
async function changeInPart<Stored extends { readonly version: number }, Result extends object>(
  ifVersion: number | undefined,
  read: () => Promise<Stored | undefined>,
  complete: (stored: Stored) => object,
  change: (changes: object, ifVersion: number | undefined) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; tries <= triesMax; tries++) {
    const stored = await read();
    const completed = stored && unlessIncomplete(() => complete(stored));
    if (stored === undefined || completed instanceof IncompleteRule) {
      const outcome = await change({}, noVersion);
      const isOtherVersion = ifVersion !== undefined && ifVersion !== stored?.version;
      if (!isVersionConflict(outcome) || isOtherVersion) return outcome;
      if (completed !== undefined) throw completed;
    } else {
      const outcome = await change(completed as object, ifVersion ?? stored.version);
      if (!isVersionConflict(outcome) || ifVersion !== undefined) return outcome;
    }
  }
  throw new Unavailable("others have changed it each time");
}

function unlessIncomplete(complete: () => object): object {
  try {
    return complete();
  } catch (error) {
    if (error instanceof IncompleteRule) return error;
    throw error;
  }
}

function isVersionConflict(outcome: object): boolean {
  return "reason" in outcome && outcome.reason === "version";
}

/** A refill rule is stored with the counter. */
function fieldsOf(stored: StoredResources[Resource]): object {
  return "counter" in stored ? { ...stored, refill: stored.counter?.refill } : stored;
}

/** An expiry in the past means now. */
function notBefore<Parts extends object>(nowMs: number, parts: Parts): Parts {
  const { expiresAtMs } = parts as { readonly expiresAtMs?: number | null };
  return expiresAtMs && expiresAtMs < nowMs ? { ...parts, expiresAtMs: nowMs } : parts;
}

/** Makes an owner or an API, and answers it. `request`: as it came. */
export async function createResource<Of extends "owner" | "api">(
  management: Management,
  resource: Of,
  created: Of extends "owner" ? NewOwner : NewApi,
  request: object,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredResources[Of]> {
  const kind = resource === "owner" ? "createOwner" : "createApi";
  const command = { kind, created, event: newEvent(deps) } as Command;
  const outcome = await changeOnce(management, command, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer as StoredResources[Of];
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      throw new Forbidden("a root key that is limited to some APIs cannot create others");
    case "repeated": {
      const { targetId } = outcome;
      const found = await management.read({ kind: resource as Resource, id: targetId });
      if (found !== undefined) return found as StoredResources[Of];
      const created = resource === "owner" ? "the owner" : targetId;
      throw new IdempotencyConflict(`this Idempotency-Key has created ${created}, which was deleted since`);
    }
  }
}

/** Answers what is left in the counter of a key or owner, if it has one. */
export async function updateRemaining(
  management: Management,
  holder: "key" | "owner",
  request: CounterChange & { readonly id: string },
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<{ readonly remaining: number | undefined } | undefined> {
  const kind = holder === "key" ? "updateRemaining" : "updateOwnerRemaining";
  const command = { kind, ...request, event: newEvent(deps) } as const;
  const once = { key, request: asNamed(holder, request), ...deps };
  const outcome = await changeOnce(management, command, once);
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  if (outcome.outcome === "done") return { remaining: outcome.answer?.remaining };
  const found = outcome.outcome === "repeated" ? await management.read({ kind: holder, id: request.id }) : undefined;
  return found && { remaining: found.counter?.remaining };
}

/** Returns whether there was such a key or root key. From then on this replica does not find it. */
export async function deleteResource(
  management: Pick<Management, "change">,
  kind: "deleteKey" | "revokeRootKey",
  id: string,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const command = { kind, id, event: newEvent(deps) } as const;
  const once = { key, request: asNamed(resourceOf(command), { id }), ...deps };
  const outcome = await changeOnce(management, command, once);
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  return outcome.outcome !== "missing";
}
