import { Forbidden } from "../domain/forbidden.ts";
import { covers } from "../domain/permissions.ts";
import { type Allowance, allowanceAfter, grantRefusal, includesApi, includesApis } from "../domain/root-key.ts";
import type { Command } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import type { Answers, Query } from "../store/queries.ts";

/*
 * What each command and each query needs of a root key. The front has checked the permission of the method that was called;
 * here each call is checked again where it is carried out, because what a front knows of a root key may be a second old.
 */

/** Any of these permissions is enough: several methods may make the same query. Undefined: every root key may. */
type Permissions = readonly [string, ...string[]] | undefined;

interface CommandRule<Made> {
  readonly permissions: Permissions;
  /** What it changes: something of an API, a key, an owner, root keys, or what only a root key of all APIs may change. */
  readonly target: (
    command: Made,
  ) => { readonly apiId: string } | { readonly keyId: string } | OwnerTarget | RootKeyTarget | "all APIs";
}

/** The owner that is changed or deleted, if it is there, and the APIs that it is to concern: null for all. */
interface OwnerTarget {
  readonly ownerId: string | undefined;
  /** Undefined: as before. */
  readonly apiIdsAfter: ApiIds | null | undefined;
}

/** The root key that is changed or revoked, if it is there, and what one would allow afterwards. */
interface RootKeyTarget {
  readonly rootKeyId: string | undefined;
  readonly after: (before: Allowance) => Allowance;
}

const ofKey = ({ keyId }: { readonly keyId: string }) => ({ keyId });
const ofOwner = ({ ownerId }: { readonly ownerId: string }) => ({ ownerId, apiIdsAfter: undefined });
const ofApi = ({ apiId }: { readonly apiId: string }) => ({ apiId });

const commandRules: { readonly [Kind in Command["kind"]]: CommandRule<Extract<Command, { kind: Kind }>> } = {
  createKey: { permissions: ["keys.create"], target: ({ key }) => ({ apiId: key.apiId }) },
  updateKey: { permissions: ["keys.update"], target: ofKey },
  updateRemaining: { permissions: ["keys.update"], target: ofKey },
  rerollKey: { permissions: ["keys.update"], target: ofKey },
  deleteKey: { permissions: ["keys.delete"], target: ofKey },
  importKeys: { permissions: ["keys.create"], target: ({ apiId }) => ({ apiId }) },
  createRootKey: {
    permissions: ["rootKeys.update"],
    target: ({ rootKey }) => ({ rootKeyId: undefined, after: () => rootKey }),
  },
  updateRootKey: {
    permissions: ["rootKeys.update"],
    target: ({ rootKeyId, changes }) => ({ rootKeyId, after: (before) => allowanceAfter(before, changes) }),
  },
  revokeRootKey: {
    permissions: ["rootKeys.update"],
    target: ({ rootKeyId }) => ({ rootKeyId, after: (before) => before }),
  },
  createApi: { permissions: ["apis.create"], target: () => "all APIs" },
  updateApi: { permissions: ["apis.update"], target: ofApi },
  stopApi: { permissions: ["apis.delete"], target: ofApi },
  deleteApiKeys: { permissions: ["apis.delete"], target: ofApi },
  deleteApi: { permissions: ["apis.delete"], target: ofApi },
  createOwner: {
    permissions: ["owners.create"],
    target: ({ owner }) => ({ ownerId: undefined, apiIdsAfter: owner.apiIds ?? null }),
  },
  updateOwner: {
    permissions: ["owners.update"],
    target: ({ ownerId, changes }) => ({ ownerId, apiIdsAfter: changes.apiIds }),
  },
  updateOwnerRemaining: { permissions: ["owners.update"], target: ofOwner },
  stopOwner: { permissions: ["owners.delete"], target: ofOwner },
  deleteOwner: { permissions: ["owners.delete"], target: ofOwner },
};

type ApiIds = readonly string[];

interface QueryRule<Asked extends Query> {
  readonly permissions: Permissions;
  /** The answer for a root key that is limited to these APIs: what belongs to others is not there. */
  readonly read: (query: Asked, apiIds: ApiIds, store: Store) => Promise<Answers[Asked["kind"]]>;
}

type Store = Pick<Management, "read">;

const ownKey = (key: Answers["key"], apiIds: ApiIds) => (key && includesApi(apiIds, key.apiId) ? key : undefined);
const readOwnKey = async (query: Extract<Query, { kind: "key" | "keyOfSecret" }>, apiIds: ApiIds, store: Store) =>
  ownKey(await store.read(query), apiIds);

async function readOwnOwner(query: Extract<Query, { kind: "owner" }>, apiIds: ApiIds, store: Store) {
  const owner = await store.read(query);
  return owner && includesApis(apiIds, owner.apiIds) ? owner : undefined;
}

const refuseLimited = async (_: Query, apiIds: ApiIds): Promise<never> => {
  throw new Forbidden(grantRefusal({ ...nothing, apiIds }, nothing));
};
async function readOwnApi<Asked extends Extract<Query, { kind: "api" | "apiDefaults" }>>(
  query: Asked,
  apiIds: ApiIds,
  store: Store,
): Promise<Answers[Asked["kind"]]> {
  return includesApi(apiIds, query.apiId) ? store.read(query) : (undefined as Answers[Asked["kind"]]);
}

const queryRules: { readonly [Kind in Query["kind"]]: QueryRule<Extract<Query, { kind: Kind }>> } = {
  keptAnswer: {
    permissions: undefined,
    // It names what was made or changed, which must be a key of an API of the root key's own: only who creates keys asks.
    async read(query, apiIds, store) {
      const kept = await store.read(query);
      return kept && (await readOwnKey({ kind: "key", keyId: kept.targetId }, apiIds, store)) && kept;
    },
  },
  // Read again by methods that create or change it, to answer a repeated request.
  key: { permissions: ["keys.read", "keys.create", "keys.update"], read: readOwnKey },
  keyOfSecret: { permissions: ["keys.read"], read: readOwnKey },
  // Read by `deleteOwner` too, which disables or deletes them.
  keys: {
    permissions: ["keys.read", "owners.delete"],
    read: (query, apiIds, store) => store.read({ ...query, apiIds }),
  },
  rootKey: { permissions: ["rootKeys.read", "rootKeys.update"], read: refuseLimited },
  rootKeys: { permissions: ["rootKeys.read"], read: refuseLimited },
  // Read again by the methods that create or change it.
  api: { permissions: ["apis.read", "apis.create", "apis.update"], read: readOwnApi },
  apiDefaults: { permissions: ["keys.create"], read: readOwnApi },
  apis: { permissions: ["apis.read"], read: (query, within, store) => store.read({ ...query, within }) },
  // Read again by the methods that create, change or delete it.
  owner: { permissions: ["owners.read", "owners.create", "owners.update", "owners.delete"], read: readOwnOwner },
  // For explanations of the key.
  ownerOfKey: {
    permissions: ["keys.read"],
    read: async (query, apiIds, store) =>
      (await readOwnKey({ ...query, kind: "key" }, apiIds, store)) && store.read(query),
  },
  owners: { permissions: ["owners.read"], read: (query, within, store) => store.read({ ...query, within }) },
  events: { permissions: ["audit.read"], read: (query, apiIds, store) => store.read({ ...query, apiIds }) },
};

/** The permission that is missing for a command or query; undefined if none is. */
export function missingPermission(asked: Command | Query, granted: readonly string[]): string | undefined {
  const { permissions } = ruleOf(asked);
  return permissions?.some((one) => covers(granted, one)) === false ? permissions[0] : undefined;
}

/**
 * The command as it may be carried out under a root key that allows this; undefined if what it is about is not there for
 * this root key. Throws `Forbidden`.
 */
export async function commandWithin<Made extends Command>(
  command: Made,
  allowance: Allowance,
  store: Store,
): Promise<Made | undefined> {
  const target = (commandRules[command.kind] as CommandRule<Command>).target(command);
  const { apiIds } = allowance;
  if (target === "all APIs") return apiIds === undefined ? command : undefined;
  if ("after" in target) return rootKeyCommandWithin(command, target, allowance, store);
  if (apiIds === undefined) return command;
  if ("apiId" in target) return includesApi(apiIds, target.apiId) ? command : undefined;
  if ("ownerId" in target) return ownerCommandWithin(command, target, apiIds, store);
  // The API of a key never changes. One that is gone may have been deleted by the same request, which is repeated.
  const key = await store.read({ kind: "key", keyId: target.keyId });
  return key === undefined || includesApi(apiIds, key.apiId) ? command : undefined;
}

async function ownerCommandWithin<Made extends Command>(
  command: Made,
  { ownerId, apiIdsAfter }: OwnerTarget,
  apiIds: ApiIds,
  store: Store,
): Promise<Made | undefined> {
  if (apiIdsAfter !== undefined && !includesApis(apiIds, apiIdsAfter ?? undefined)) {
    throw new Forbidden(
      "a root key that is limited to some APIs can only manage owners of those: apiIds must name them",
    );
  }
  if (ownerId === undefined) return command;
  const before = await store.read({ kind: "owner", ownerId });
  if (before !== undefined && !includesApis(apiIds, before.apiIds)) return undefined;
  return asRead(command, before?.version);
}

async function rootKeyCommandWithin<Made extends Command>(
  command: Made,
  { rootKeyId, after }: RootKeyTarget,
  allowance: Allowance,
  store: Store,
): Promise<Made> {
  if (grantRefusal(allowance, everything) === undefined) return command;
  requireGrant(allowance, rootKeyId === undefined ? after(nothing) : nothing);
  if (rootKeyId === undefined) return command;
  const before = await store.read({ kind: "rootKey", rootKeyId });
  if (before === undefined) return command;
  requireGrant(allowance, before);
  requireGrant(allowance, after(before));
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

/** The answer for a root key that is limited to these APIs. */
export function readWithin<Asked extends Query>(
  query: Asked,
  apiIds: ApiIds,
  store: Store,
): Promise<Answers[Asked["kind"]]> {
  return (queryRules[query.kind] as unknown as QueryRule<Asked>).read(query, apiIds, store);
}

function ruleOf(asked: Command | Query): { readonly permissions: Permissions } {
  return asked.kind in commandRules
    ? commandRules[asked.kind as Command["kind"]]
    : queryRules[asked.kind as Query["kind"]];
}
