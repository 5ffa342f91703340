import {
  type Allowance,
  allowanceAfter,
  Forbidden,
  grantRefusal,
  includesApi,
  includesApis,
} from "../domain/root-key.ts";
import { type Command, resourceOf, targetIdOf } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import type { Answers, Query } from "../store/queries.ts";

/*
 * What a root key that is limited, or that may not do everything, can do with each command and each query. The permission of
 * the method that was called was checked before.
 */

type ApiIds = readonly string[];
type Store = Pick<Management, "read">;

/**
 * The command as it may be carried out under a root key that allows this; undefined if what it is about is not there for
 * this root key. Throws `Forbidden`.
 */
export async function commandWithin<Made extends Command>(
  command: Made,
  allowance: Allowance,
  store: Store,
): Promise<Made | undefined> {
  const { apiIds } = allowance;
  const resource = resourceOf(command);
  if (resource === "rootKey") return rootKeyCommandWithin(command, allowance, store);
  if (apiIds === undefined) return command;
  switch (resource) {
    case "owner":
      return ownerCommandWithin(command, apiIds, store);
    case "api":
      // Only a root key of all APIs may create others.
      return command.kind !== "createApi" && includesApi(apiIds, targetIdOf(command)) ? command : undefined;
    case "key":
      return keyCommandWithin(command, apiIds, store);
  }
}

async function keyCommandWithin<Made extends Command>(
  command: Made,
  apiIds: ApiIds,
  store: Store,
): Promise<Made | undefined> {
  if (command.kind === "createKey") return includesApi(apiIds, command.created.apiId) ? command : undefined;
  if (command.kind === "importKeys") return includesApi(apiIds, command.apiId) ? command : undefined;
  // The API of a key never changes. One that is gone may have been deleted by the same request, which is repeated.
  const key = await store.read({ kind: "key", id: targetIdOf(command) });
  return key === undefined || includesApi(apiIds, key.apiId) ? command : { ...command, id: idOfNothing };
}

/**
 * The target of a command on something foreign. The store then makes the same statements as for an id that does not exist, so
 * neither the answer nor its time shows the difference. Ids are shorter than this.
 */
const idOfNothing = "-".repeat(256);

async function ownerCommandWithin<Made extends Command>(
  command: Made,
  apiIds: ApiIds,
  store: Store,
): Promise<Made | undefined> {
  const apiIdsAfter = apiIdsIn(command);
  if (apiIdsAfter !== undefined && !includesApis(apiIds, apiIdsAfter ?? undefined)) {
    throw new Forbidden(
      "a root key that is limited to some APIs can only manage owners of those: apiIds must name them",
    );
  }
  if (command.kind === "createOwner") return command;
  // The keys that are ended must be of such an API too.
  if (command.kind === "endOwnerKeys" && !includesApi(apiIds, command.apiId ?? "")) return undefined;
  const before = await store.read({ kind: "owner", id: targetIdOf(command) });
  const isForeign = before !== undefined && !includesApis(apiIds, before.apiIds);
  return isForeign ? asRead({ ...command, id: idOfNothing }) : asRead(command, before?.version);
}

/** The APIs that an owner is to concern: null for all. Undefined: as before. */
function apiIdsIn(command: Command): ApiIds | null | undefined {
  if (command.kind === "createOwner") return command.created.apiIds ?? null;
  return command.kind === "updateOwner" ? command.changes.apiIds : undefined;
}

async function rootKeyCommandWithin<Made extends Command>(
  command: Made,
  allowance: Allowance,
  store: Store,
): Promise<Made> {
  if (grantRefusal(allowance, everything) === undefined) return command;
  requireGrant(allowance, command.kind === "createRootKey" ? command.created : nothing);
  if (command.kind === "createRootKey") return command;
  const before = await store.read({ kind: "rootKey", id: targetIdOf(command) });
  if (before === undefined) return command;
  requireGrant(allowance, before);
  if (command.kind === "updateRootKey") requireGrant(allowance, allowanceAfter(before, command.changes));
  return asRead(command, before.version);
}

/**
 * Makes a command fail if what it changes is not as it was read: it may be given more meanwhile, or be made, than the root key
 * may change. No version is 0, which stands for what was not there, and for a version that the caller has wrong already.
 */
function asRead<Made extends Command>(command: Made, version = 0): Made {
  const { ifVersion = version } = command as { readonly ifVersion?: number };
  return { ...command, ifVersion: ifVersion === version ? version : 0 };
}

const everything: Allowance = { permissions: ["*"], apiIds: undefined, expiresAtMs: undefined };
/** May do nothing, and is over. */
const nothing: Allowance = { permissions: [], apiIds: undefined, expiresAtMs: 0 };

function requireGrant(granter: Allowance, granted: Allowance): void {
  const refusal = grantRefusal(granter, granted);
  if (refusal !== undefined) throw new Forbidden(refusal);
}

/** The answer for a root key that is limited to these APIs: what belongs to others is not there. Throws `Forbidden`. */
export async function readWithin<Asked extends Query>(
  query: Asked,
  apiIds: ApiIds,
  store: Store,
): Promise<Answers[Asked["kind"]]> {
  return (await answerWithin(query, apiIds, store)) as Answers[Asked["kind"]];
}

async function answerWithin(query: Query, apiIds: ApiIds, store: Store): Promise<Answers[Query["kind"]]> {
  switch (query.kind) {
    case "rootKey":
    case "rootKeys":
      throw new Forbidden(grantRefusal({ ...nothing, apiIds }, nothing));
    case "api":
      return includesApi(apiIds, query.id) ? store.read(query) : undefined;
    case "owner": {
      const owner = await store.read(query);
      return owner && includesApis(apiIds, owner.apiIds) ? owner : undefined;
    }
    case "key":
    case "keyOfSecret": {
      const key = await store.read(query);
      return key && includesApi(apiIds, key.apiId) ? key : undefined;
    }
    // For explanations of the key.
    case "ownerOfKey":
      return (await readWithin({ kind: "key", id: query.keyId }, apiIds, store)) && store.read(query);
    // It names what was made or changed, which must be a key of an API of the root key's own: only who creates keys asks.
    case "keptAnswer": {
      const kept = await store.read(query);
      return kept && (await readWithin({ kind: "key", id: kept.targetId }, apiIds, store)) && kept;
    }
    case "keys":
    case "owners":
    case "apis":
    case "events":
    case "spending":
      return store.read({ ...query, apiIds });
  }
}
