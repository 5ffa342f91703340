import { concernsApi } from "../domain/owner.ts";
import type { Command } from "../store/commands.ts";
import type { Management } from "../store/management.ts";

/** The API takes only keys whose owner has a record, and this one has none. Safe to show to the caller. */
export class NoSuchOwner extends Error {
  override readonly name = "NoSuchOwner";

  constructor() {
    super("there is no such owner, and the API requires one (ownersRequired); create it first with owners.createOwner");
  }
}

/**
 * Whether every owner that the command gives a key has a record, if the key's API requires it. `stored`: what the root key may
 * see. An owner that is deleted at the same moment may still be named; its keys stay too.
 */
export async function haveOwners(command: Command, stored: Pick<Management, "read">): Promise<boolean> {
  const ownerIds = new Set(keysIn(command).flatMap(({ ownerId }) => ownerId ?? []));
  if (ownerIds.size === 0) return true;
  const before = command.kind === "updateKey" ? await stored.read({ kind: "key", id: command.id }) : undefined;
  const apiId = before?.apiId ?? (keysIn(command)[0] as { readonly apiId?: string }).apiId;
  // A key that is not there, or whose owner stays.
  if (apiId === undefined || (before?.ownerId !== undefined && ownerIds.has(before.ownerId))) return true;
  const api = await stored.read({ kind: "api", id: apiId });
  if (!api?.ownersRequired) return true;
  const owners = await Promise.all(Array.from(ownerIds, (id) => stored.read({ kind: "owner", id })));
  return owners.every((owner) => owner !== undefined && concernsApi(owner, apiId));
}

/** What the command says of keys. */
function keysIn(command: Command): readonly { readonly ownerId?: string | null | undefined }[] {
  if (command.kind === "createKey") return [command.created];
  if (command.kind === "importKeys") return command.keys;
  return command.kind === "updateKey" ? [command.changes] : [];
}
