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
  const { apiId, ownerIds } = await namedBy(command, stored);
  if (apiId === undefined || ownerIds.size === 0) return true;
  const api = await stored.read({ kind: "api", id: apiId });
  if (!api?.ownersRequired) return true;
  const owners = await Promise.all([...ownerIds].map((id) => stored.read({ kind: "owner", id })));
  return owners.every((owner) => owner !== undefined && concernsApi(owner, apiId));
}

/** The API of the keys, and the owners that they are given. */
async function namedBy(command: Command, stored: Pick<Management, "read">) {
  switch (command.kind) {
    case "createKey":
      return { apiId: command.created.apiId, ownerIds: ownersOf([command.created]) };
    case "importKeys":
      return { apiId: command.apiId, ownerIds: ownersOf(command.keys) };
    case "updateKey": {
      if (!command.changes.ownerId) return nothing;
      const key = await stored.read({ kind: "key", id: command.id });
      return key?.ownerId === command.changes.ownerId
        ? nothing
        : { apiId: key?.apiId, ownerIds: ownersOf([command.changes]) };
    }
    default:
      return nothing;
  }
}

const nothing = { apiId: undefined, ownerIds: new Set<string>() };

function ownersOf(keys: readonly { readonly ownerId?: string | null | undefined }[]): ReadonlySet<string> {
  return new Set(keys.flatMap(({ ownerId }) => ownerId ?? []));
}
