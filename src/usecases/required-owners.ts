import { concernsApi } from "../domain/owner.ts";
import type { Command } from "../store/commands.ts";
import type { Management } from "../store/management.ts";

/** The API takes only keys whose owner has a record, and this one has none. Safe to show to the caller. */
export class NoSuchOwner extends Error {
  override readonly name = "NoSuchOwner";

  /** `at`: which of several keys names it. */
  constructor(at: number | undefined) {
    const where = at === undefined ? "" : ` (keys[${at}])`;
    super(`there is no such owner that this root key may see${where}, and the API requires one (ownersRequired)`);
  }
}

/**
 * Where the command gives a key an owner without a record, if the key's API requires one: the place of the first such key.
 * `stored`: what the root key may see. What changes at the same moment, the API's own field or the owner's record, may count or
 * not.
 */
export async function findMissingOwner(
  command: Command,
  stored: Pick<Management, "read">,
): Promise<number | undefined> {
  const keys = keysIn(command);
  const ownerIds = new Set(keys.flatMap(({ ownerId }) => ownerId ?? []));
  if (ownerIds.size === 0) return undefined;
  const before = command.kind === "updateKey" ? await stored.read({ kind: "key", id: command.id }) : undefined;
  const apiId = before?.apiId ?? (keys[0] as { readonly apiId?: string }).apiId;
  // A key that is not there, or whose owner stays.
  if (apiId === undefined || (before?.ownerId !== undefined && ownerIds.has(before.ownerId))) return undefined;
  const api = await stored.read({ kind: "api", id: apiId });
  if (!api?.ownersRequired) return undefined;
  const owners = await Promise.all(Array.from(ownerIds, (id) => stored.read({ kind: "owner", id })));
  const found = new Set(owners.flatMap((owner) => (owner && concernsApi(owner, apiId) ? owner.id : [])));
  const at = keys.findIndex(({ ownerId }) => ownerId && !found.has(ownerId));
  return at < 0 ? undefined : at;
}

/** What the command says of keys. */
function keysIn(command: Command): readonly { readonly ownerId?: string | null | undefined }[] {
  if (command.kind === "createKey") return [command.created];
  if (command.kind === "importKeys") return command.keys;
  return command.kind === "updateKey" ? [command.changes] : [];
}
