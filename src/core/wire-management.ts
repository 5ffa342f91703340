import type { Changed } from "../../gen/latchkey/core/v1/core_pb.js";
import type { ApiFieldChanges } from "../domain/api.ts";
import type { KeyFieldChanges } from "../domain/key.ts";
import { overlapMsMax } from "../domain/overlap.ts";
import type { OwnerFieldChanges } from "../domain/owner.ts";
import type { NewRootKey, RootKeyFieldChanges } from "../domain/root-key.ts";
import { remainingMax } from "../domain/usage.ts";
import {
  type Command,
  type CounterChange,
  deletedKeysMax,
  type IdempotencyRecord,
  type ImportKeys,
  importedKeysMax,
  type KeysOfOwner,
  type NewEvent,
} from "../store/commands.ts";
import type { Outcome } from "../store/management.ts";
import {
  type ApiPosition,
  type EventsQuery,
  type KeysQuery,
  pageApisMax,
  pageLimitMax,
  type Query,
} from "../store/queries.ts";
import {
  absent,
  type Check,
  digest,
  fromJson,
  impossible,
  list,
  moment,
  object,
  oneOf,
  optional,
  orNull,
  text,
  textOf,
  truth,
  wholeNumber,
} from "./checks.ts";
import {
  apiIds,
  apiIdsMax,
  costMax,
  defaults,
  importedKey,
  ipAllow,
  meta,
  newKey,
  newOwner,
  permissions,
  rateLimit,
  rateLimits,
  refill,
} from "./wire-values.ts";

/* Commands and queries as they go over the internal streams: as JSON. What each may hold is said here. */

export function toWireChange(command: Command, idempotency: IdempotencyRecord | undefined) {
  const idempotencyJson = idempotency === undefined ? "" : JSON.stringify(idempotency);
  return { commandJson: JSON.stringify(command), idempotencyJson };
}

/** Throws on what no edge of ours sends. */
export function fromWireChange({ commandJson, idempotencyJson }: { commandJson: string; idempotencyJson: string }): {
  readonly command: Command;
  readonly idempotency: IdempotencyRecord | undefined;
} {
  return {
    command: fromJson(commandJson, ofKind(commands), "command"),
    idempotency: idempotencyJson === "" ? undefined : fromJson(idempotencyJson, idempotencyRecord, "idempotency"),
  };
}

/** Throws on what no edge of ours sends. */
export function fromWireQuery(queryJson: string): Query {
  return fromJson(queryJson, ofKind(queries), "query");
}

/** As a coordinator has sent it: it is believed. */
export function fromWireOutcome<Kind extends Command["kind"]>({ outcomeJson }: Changed): Outcome<Kind> {
  return JSON.parse(outcomeJson) as Outcome<Kind>;
}

type ByKind<All extends { readonly kind: string }> = {
  readonly [Kind in All["kind"]]: Check<Extract<All, { readonly kind: Kind }>>;
};

/** Each kind has a check of its own. */
function ofKind<All extends { readonly kind: string }>(checks: ByKind<All>): Check<All> {
  return (value, name) => {
    const kind = (value as All | null | undefined)?.kind;
    if (typeof kind !== "string" || !Object.hasOwn(checks, kind)) throw impossible(name);
    return (checks as Readonly<Record<string, Check<All>>>)[kind]?.(value, name) as All;
  };
}

const event = object<NewEvent>({ id: text, atMs: moment, actor: text });

const counterChange = { op: oneOf("set", "increment", "decrement"), value: optional(wholeNumber(0, remainingMax)) };

/** A counter is removed by `set` only. */
function withValueUnlessSet<Made extends CounterChange>(fields: Check<Made>): Check<Made> {
  return (value, name) => {
    const command = fields(value, name);
    if (command.value === undefined && command.op !== "set") throw impossible("value");
    return command;
  };
}

const ifVersion = optional(wholeNumber(0, Number.MAX_SAFE_INTEGER));
const rootKeyPermissions = list(textOf(/^[A-Za-z.*]+$/, 64), 100);
const rootKeyApiIds = list(text, apiIdsMax);

const commands: ByKind<Command> = {
  createKey: object({ kind: oneOf("createKey"), key: newKey, apiMustExist: absent, event }),
  updateKey: object({
    kind: oneOf("updateKey"),
    keyId: text,
    ifVersion,
    changes: object<KeyFieldChanges>({
      ownerId: optional(orNull(text)),
      name: optional(orNull(text)),
      meta: optional(meta),
      enabled: optional(truth),
      expiresAtMs: optional(orNull(moment)),
      rateLimit: optional(orNull(rateLimit)),
      rateLimits: optional(orNull(rateLimits)),
      costMax: optional(orNull(costMax)),
      refill: optional(orNull(refill)),
      permissions: optional(orNull(permissions)),
      ipAllow: optional(orNull(ipAllow)),
    }),
    event,
  }),
  updateRemaining: withValueUnlessSet(object({ kind: oneOf("updateRemaining"), keyId: text, ...counterChange, event })),
  rerollKey: object({
    kind: oneOf("rerollKey"),
    keyId: text,
    secretDigest: digest,
    start: text,
    overlapMs: wholeNumber(0, overlapMsMax),
    event,
  }),
  deleteKey: object({ kind: oneOf("deleteKey"), keyId: text, ifVersion, event }),
  createRootKey: object({
    kind: oneOf("createRootKey"),
    rootKey: object<NewRootKey>({
      id: text,
      digest,
      start: text,
      name: optional(text),
      permissions: rootKeyPermissions,
      apiIds: optional(rootKeyApiIds),
      expiresAtMs: optional(moment),
      createdAtMs: moment,
    }),
    event,
  }),
  updateRootKey: object({
    kind: oneOf("updateRootKey"),
    rootKeyId: text,
    ifVersion,
    changes: object<RootKeyFieldChanges>({
      name: optional(orNull(text)),
      permissions: optional(rootKeyPermissions),
      apiIds: optional(orNull(rootKeyApiIds)),
      expiresAtMs: optional(orNull(moment)),
    }),
    event,
  }),
  revokeRootKey: object({ kind: oneOf("revokeRootKey"), rootKeyId: text, ifVersion, event }),
  createApi: object({ kind: oneOf("createApi"), apiId: text, name: optional(text), defaults, event }),
  updateApi: object({
    kind: oneOf("updateApi"),
    apiId: text,
    ifVersion,
    changes: object<ApiFieldChanges>({ name: optional(orNull(text)), defaults: optional(defaults) }),
    event,
  }),
  stopApi: object({ kind: oneOf("stopApi"), apiId: text, event }),
  deleteApiKeys: object({
    kind: oneOf("deleteApiKeys"),
    apiId: text,
    limit: wholeNumber(1, deletedKeysMax),
    event,
  }),
  deleteApi: object({ kind: oneOf("deleteApi"), apiId: text, isStopped: truth, event }),
  createOwner: object({ kind: oneOf("createOwner"), owner: newOwner, event }),
  updateOwner: object({
    kind: oneOf("updateOwner"),
    ownerId: text,
    ifVersion,
    changes: object<OwnerFieldChanges>({
      meta: optional(meta),
      enabled: optional(truth),
      apiIds: optional(orNull(apiIds)),
      rateLimits: optional(orNull(rateLimits)),
      refill: optional(orNull(refill)),
    }),
    event,
  }),
  updateOwnerRemaining: withValueUnlessSet(
    object({ kind: oneOf("updateOwnerRemaining"), ownerId: text, ifVersion: absent, ...counterChange, event }),
  ),
  stopOwner: object({ kind: oneOf("stopOwner"), ownerId: text, ifVersion, event }),
  deleteOwner: object({
    kind: oneOf("deleteOwner"),
    ownerId: text,
    ifVersion,
    unless: optional(object<KeysOfOwner>({ apiIds: optional(apiIds), enabled: optional(truth) })),
    event,
  }),
  importKeys,
};

const keysFields = object<KeysQuery>({
  kind: oneOf("keys"),
  apiId: optional(text),
  ownerId: optional(text),
  enabled: optional(truth),
  expiresBeforeMs: optional(moment),
  search: optional(text),
  apiIds: absent,
  limit: wholeNumber(1, pageLimitMax),
  after: optional(text),
});

const keysQuery: Check<KeysQuery> = (value, name) => {
  const query = keysFields(value, name);
  if (query.apiId === undefined && query.ownerId === undefined) throw impossible(name);
  return query;
};

const importKeysFields = object<ImportKeys>({
  kind: oneOf("importKeys"),
  apiId: text,
  keys: list(importedKey, importedKeysMax),
  apiMustExist: absent,
  event,
});

function importKeys(value: unknown, name: string): ImportKeys {
  const command = importKeysFields(value, name);
  if (command.keys.length === 0 || command.keys.some(({ apiId }) => apiId !== command.apiId)) throw impossible("keys");
  return command;
}

const queries: ByKind<Query> = {
  keptAnswer: object({ kind: oneOf("keptAnswer"), lookup: digest, nowMs: moment }),
  key: object({ kind: oneOf("key"), keyId: text }),
  keyOfSecret: object({ kind: oneOf("keyOfSecret"), digest, nowMs: moment }),
  keys: keysQuery,
  events: object<EventsQuery>({
    kind: oneOf("events"),
    targetId: optional(text),
    actor: optional(text),
    method: optional(text),
    sinceMs: optional(moment),
    untilMs: optional(moment),
    apiIds: absent,
    limit: wholeNumber(1, pageLimitMax),
    after: optional(text),
  }),
  rootKey: object({ kind: oneOf("rootKey"), rootKeyId: text }),
  rootKeys: object({ kind: oneOf("rootKeys"), limit: wholeNumber(1, pageLimitMax), after: optional(text) }),
  api: object({ kind: oneOf("api"), apiId: text }),
  apiDefaults: object({ kind: oneOf("apiDefaults"), apiId: text }),
  apis: object({
    kind: oneOf("apis"),
    limit: wholeNumber(1, pageApisMax),
    after: optional(object<ApiPosition>({ createdAtMs: moment, apiId: text })),
    within: absent,
  }),
  owner: object({ kind: oneOf("owner"), ownerId: text }),
  ownerOfKey: object({ kind: oneOf("ownerOfKey"), keyId: text }),
  owners: object({
    kind: oneOf("owners"),
    limit: wholeNumber(1, pageLimitMax),
    after: optional(text),
    within: absent,
  }),
};

const idempotencyFields = object<IdempotencyRecord>({
  lookup: digest,
  targetId: text,
  requestDigest: digest,
  // An answer, encrypted: the secret of a key with 255 random bytes and its id, or the ids of 100 imported keys.
  sealedAnswer: textOf(/^[A-Za-z0-9_-]+$/, 8192),
  createdAtMs: moment,
  expiresAtMs: moment,
});

const idempotencyRecord: Check<IdempotencyRecord> = (value, name) => {
  const record = idempotencyFields(value, name);
  if (record.expiresAtMs < record.createdAtMs) throw impossible(name);
  return record;
};
