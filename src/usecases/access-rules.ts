import { covers } from "../domain/permissions.ts";
import { includesApi } from "../domain/root-key.ts";
import type { Answers, Command, Management, Query } from "../store/management.ts";

/*
 * What each command and each query needs of a root key. The front has checked the permission of the method that was called;
 * here each call is checked again where it is carried out, because what a front knows of a root key may be a second old.
 */

/** Any of these permissions is enough: several methods may make the same query. Undefined: every root key may. */
type Permissions = readonly [string, ...string[]] | undefined;

interface CommandRule<Made> {
  readonly permissions: Permissions;
  /** What it changes. A root key that is limited to APIs may change what belongs to one of them. */
  readonly target: (command: Made) => { readonly apiId: string } | { readonly keyId: string };
}

const ofKey = ({ keyId }: { readonly keyId: string }) => ({ keyId });

const commandRules: { readonly [Kind in Command["kind"]]: CommandRule<Extract<Command, { kind: Kind }>> } = {
  createKey: { permissions: ["keys.create"], target: ({ key }) => ({ apiId: key.apiId }) },
  updateKey: { permissions: ["keys.update"], target: ofKey },
  updateRemaining: { permissions: ["keys.update"], target: ofKey },
  rerollKey: { permissions: ["keys.update"], target: ofKey },
  deleteKey: { permissions: ["keys.delete"], target: ofKey },
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

const queryRules: { readonly [Kind in Query["kind"]]: QueryRule<Extract<Query, { kind: Kind }>> } = {
  keptAnswer: {
    permissions: undefined,
    // It names what was made or changed, which must be a key of an API of the root key's own.
    async read(query, apiIds, store) {
      const kept = await store.read(query);
      return kept && (await readOwnKey({ kind: "key", keyId: kept.targetId }, apiIds, store)) && kept;
    },
  },
  // Read again by methods that create or change it, to answer a repeated request.
  key: { permissions: ["keys.read", "keys.create", "keys.update"], read: readOwnKey },
  keyOfSecret: { permissions: ["keys.read"], read: readOwnKey },
  keys: { permissions: ["keys.read"], read: (query, apiIds, store) => store.read({ ...query, apiIds }) },
  events: { permissions: ["audit.read"], read: (query, apiIds, store) => store.read({ ...query, apiIds }) },
};

/** The permission that is missing for a command or query; undefined if none is. */
export function missingPermission(asked: Command | Query, granted: readonly string[]): string | undefined {
  const { permissions } = ruleOf(asked);
  return permissions?.some((one) => covers(granted, one)) === false ? permissions[0] : undefined;
}

/** Whether a root key that is limited to these APIs may change what the command is about: if it is there. */
export async function isWithin(command: Command, apiIds: ApiIds, store: Store): Promise<boolean> {
  const target = (commandRules[command.kind] as CommandRule<Command>).target(command);
  if ("apiId" in target) return includesApi(apiIds, target.apiId);
  // The API of a key never changes.
  const key = await store.read({ kind: "key", keyId: target.keyId });
  return ownKey(key, apiIds) !== undefined;
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
