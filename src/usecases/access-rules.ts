import { Forbidden } from "../domain/forbidden.ts";
import { type Allowance, allowanceAfter, grantRefusal, includesApi, includesApis } from "../domain/root-key.ts";
import type { Command } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import type { Answers, Query } from "../store/queries.ts";

/*
 * What a root key that is limited, or that may not do everything, can do with each command and each query. The permission of
 * the method that was called was checked before.
 */

/** What a command changes: something of an API, a key, an owner, root keys, or what only a root key of all APIs may change. */
type Target = { readonly apiId: string } | { readonly keyId: string } | OwnerTarget | RootKeyTarget | "all APIs";

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

const targets: { readonly [Kind in Command["kind"]]: (command: Extract<Command, { kind: Kind }>) => Target } = {
  createKey: ({ key }) => ({ apiId: key.apiId }),
  updateKey: ofKey,
  updateRemaining: ofKey,
  rerollKey: ofKey,
  deleteKey: ofKey,
  importKeys: ofApi,
  createRootKey: ({ rootKey }) => ({ rootKeyId: undefined, after: () => rootKey }),
  updateRootKey: ({ rootKeyId, changes }) => ({ rootKeyId, after: (before) => allowanceAfter(before, changes) }),
  revokeRootKey: ({ rootKeyId }) => ({ rootKeyId, after: (before) => before }),
  createApi: () => "all APIs",
  updateApi: ofApi,
  stopApi: ofApi,
  deleteApiKeys: ofApi,
  deleteApi: ofApi,
  createOwner: ({ owner }) => ({ ownerId: undefined, apiIdsAfter: owner.apiIds ?? null }),
  updateOwner: ({ ownerId, changes }) => ({ ownerId, apiIdsAfter: changes.apiIds }),
  updateOwnerRemaining: ofOwner,
  stopOwner: ofOwner,
  deleteOwner: ofOwner,
};

type ApiIds = readonly string[];

/** The answer for a root key that is limited to these APIs: what belongs to others is not there. */
type Read<Asked extends Query> = (query: Asked, apiIds: ApiIds, store: Store) => Promise<Answers[Asked["kind"]]>;

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

const reads: { readonly [Kind in Query["kind"]]: Read<Extract<Query, { kind: Kind }>> } = {
  // It names what was made or changed, which must be a key of an API of the root key's own: only who creates keys asks.
  async keptAnswer(query, apiIds, store) {
    const kept = await store.read(query);
    return kept && (await readOwnKey({ kind: "key", keyId: kept.targetId }, apiIds, store)) && kept;
  },
  key: readOwnKey,
  keyOfSecret: readOwnKey,
  keys: (query, apiIds, store) => store.read({ ...query, apiIds }),
  rootKey: refuseLimited,
  rootKeys: refuseLimited,
  api: readOwnApi,
  apiDefaults: readOwnApi,
  apis: (query, within, store) => store.read({ ...query, within }),
  owner: readOwnOwner,
  // For explanations of the key.
  ownerOfKey: async (query, apiIds, store) =>
    (await readOwnKey({ ...query, kind: "key" }, apiIds, store)) && store.read(query),
  owners: (query, within, store) => store.read({ ...query, within }),
  events: (query, apiIds, store) => store.read({ ...query, apiIds }),
};

/**
 * The command as it may be carried out under a root key that allows this; undefined if what it is about is not there for
 * this root key. Throws `Forbidden`.
 */
export async function commandWithin<Made extends Command>(
  command: Made,
  allowance: Allowance,
  store: Store,
): Promise<Made | undefined> {
  const target = (targets[command.kind] as (command: Made) => Target)(command);
  const { apiIds } = allowance;
  if (target === "all APIs") return apiIds === undefined ? command : undefined;
  if ("after" in target) return rootKeyCommandWithin(command, target, allowance, store);
  if (apiIds === undefined) return command;
  if ("apiId" in target) return includesApi(apiIds, target.apiId) ? command : undefined;
  if ("ownerId" in target) return ownerCommandWithin(command, target, apiIds, store);
  // The API of a key never changes. One that is gone may have been deleted by the same request, which is repeated.
  const key = await store.read({ kind: "key", keyId: target.keyId });
  return key === undefined || includesApi(apiIds, key.apiId) ? command : { ...command, keyId: idOfNothing };
}

/**
 * The target of a command on something foreign. The store then makes the same statements as for an id that does not exist, so
 * neither the answer nor its time shows the difference. Ids are shorter than this.
 */
const idOfNothing = "-".repeat(256);

async function ownerCommandWithin<Made extends Command>(
  command: Made,
  { ownerId, apiIdsAfter }: OwnerTarget,
  apiIds: ApiIds,
  store: Store,
): Promise<Made> {
  if (apiIdsAfter !== undefined && !includesApis(apiIds, apiIdsAfter ?? undefined)) {
    throw new Forbidden(
      "a root key that is limited to some APIs can only manage owners of those: apiIds must name them",
    );
  }
  if (ownerId === undefined) return command;
  const before = await store.read({ kind: "owner", ownerId });
  const isForeign = before !== undefined && !includesApis(apiIds, before.apiIds);
  return isForeign ? asRead({ ...command, ownerId: idOfNothing }) : asRead(command, before?.version);
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
  return (reads[query.kind] as unknown as Read<Asked>)(query, apiIds, store);
}
