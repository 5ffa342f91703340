import type { Clock } from "../../src/ambient/clock.ts";
import type { NewKey, StoredKey } from "../../src/domain/key.ts";
import type { exchangePermits } from "../../src/domain/permit-window.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { settle } from "../../src/domain/usage.ts";
import type { ChangeFeed } from "../../src/store/change-feed.ts";
import type {
  Command,
  CreateRootKey,
  IdempotencyRecord,
  KeptAnswer,
  RevokeRootKey,
  UpdateKey,
  UpdateRemaining,
  UpdateRootKey,
} from "../../src/store/commands.ts";
import type { KeyLookup, OwnerLookup } from "../../src/store/key-lookup.ts";
import type { Management, Outcome } from "../../src/store/management.ts";
import type { PermitEngine } from "../../src/store/permit-ledger.ts";
import type { Answers, Query } from "../../src/store/queries.ts";
import type { RootKeyStore } from "../../src/store/root-key-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { UsageEngine } from "../../src/store/usage-ledger.ts";
import { createKey, deleteKey, findKeptAnswer, setRateLimit } from "../support/manage.ts";
import type { rerolledSecrets, updatedCounter } from "../support/memory-rules.ts";
import { createMemoryStore } from "../support/memory-store.ts";

/** A store with one plausible mistake: the simple store with one part replaced. */
export interface BrokenStore {
  readonly mistake: string;
  open(clock: Clock): Store;
}

/** The parts of a store that are about keys, as calls. */
export interface KeyCalls extends KeyLookup, OwnerLookup {
  create(key: NewKey, record?: IdempotencyRecord): Promise<Outcome>;
  findKeptAnswer(lookup: string, nowMs: number): Promise<KeptAnswer | undefined>;
  /** The digests of the key's secrets; undefined if there is no such key. */
  delete(keyId: string): Promise<readonly string[] | undefined>;
  updateKey(command: UpdateKey): Promise<Outcome<"updateKey">>;
  /** Changes of the rate limit alone. */
  setRateLimit(keyId: string, rateLimit: RateLimit | undefined): Promise<readonly string[] | undefined>;
  updateRemaining(command: UpdateRemaining): Promise<Outcome<"updateRemaining">>;
}

export function keys(mistake: string, breakIt: (inner: KeyCalls, store: Store) => Partial<KeyCalls>): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management } = inner;
      const calls: KeyCalls = {
        findByDigest: (digest) => inner.keys.findByDigest(digest),
        findOwner: (ownerId) => inner.keys.findOwner(ownerId),
        create: (key, record) => createKey(management, key, record),
        findKeptAnswer: (lookup, nowMs) => findKeptAnswer(management, lookup, nowMs),
        delete: (keyId) => deleteKey(management, keyId),
        updateKey: (command) => management.change(command),
        setRateLimit: (keyId, rateLimit) => setRateLimit(management, keyId, rateLimit),
        updateRemaining: (command) => management.change(command),
      };
      return { ...inner, ...storeOf({ ...calls, ...breakIt(calls, inner) }, inner) };
    },
  };
}

function storeOf(calls: KeyCalls, inner: Store): Pick<Store, "keys" | "management"> {
  const outcomeOf = (keyId: string, digests: readonly string[] | undefined): Outcome =>
    digests === undefined ? { outcome: "missing" } : { outcome: "done", changed: [{ keyId, digests }] };
  const change = async (command: Command, record?: IdempotencyRecord): Promise<Outcome<Command["kind"]>> => {
    switch (command.kind) {
      case "createKey":
        return command.apiMustExist ? inner.management.change(command, record) : calls.create(command.created, record);
      case "deleteKey":
        return outcomeOf(command.id, await calls.delete(command.id));
      case "updateKey": {
        const { rateLimit, ...others } = command.changes;
        if (rateLimit === undefined || Object.keys(others).length > 0) return calls.updateKey(command);
        return outcomeOf(command.id, await calls.setRateLimit(command.id, rateLimit ?? undefined));
      }
      case "updateRemaining":
        return calls.updateRemaining(command);
      default:
        return inner.management.change(command, record);
    }
  };
  return {
    keys: calls,
    management: {
      change: async (command, record) => (await change(command, record)) as Outcome<(typeof command)["kind"]>,
      read: <Asked extends Query>(query: Asked) =>
        query.kind === "keptAnswer"
          ? (calls.findKeptAnswer(query.lookup, query.nowMs) as Promise<Answers[Asked["kind"]]>)
          : inner.management.read(query),
    },
  };
}

/** Shows something else of a key than it has. */
export function shows(mistake: string, change: (key: StoredKey, inner: Store) => StoredKey | undefined): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const read = async <Asked extends Query>(query: Asked) => {
        const answer = await inner.management.read(query);
        if ((query.kind !== "key" && query.kind !== "keyOfSecret") || answer === undefined) return answer;
        return change(answer as StoredKey, inner) as Answers[Asked["kind"]];
      };
      return { ...inner, management: { ...inner.management, read } };
    },
  };
}

/** Gets commands or queries wrong, whatever they are about. */
export function manages(
  mistake: string,
  breakIt: (inner: AnyManagement, store: Store) => Partial<AnyManagement>,
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const { change, read } = { ...(inner.management as AnyManagement), ...breakIt(inner.management, inner) };
      const management: Management = {
        change: async (command, record) => (await change(command, record)) as Outcome<(typeof command)["kind"]>,
        read: async <Asked extends Query>(query: Asked) => (await read(query)) as Answers[Asked["kind"]],
      };
      return { ...inner, management };
    },
  };
}

/** `Management` without what the types say of each kind. */
export interface AnyManagement {
  change(command: Command, record?: IdempotencyRecord): Promise<Outcome<Command["kind"]>>;
  read(query: Query): Promise<Answers[Query["kind"]]>;
}

/** Stores something else than it was given. */
export function stores(mistake: string, change: (key: NewKey) => NewKey): BrokenStore {
  return keys(mistake, (inner) => ({ create: (key, record) => inner.create(change(key), record) }));
}

export function records(mistake: string, change: (record: IdempotencyRecord) => IdempotencyRecord): BrokenStore {
  return keys(mistake, (inner) => ({ create: (key, record) => inner.create(key, record && change(record)) }));
}

export function rootKeys(mistake: string, breakIt: (inner: RootKeyStore) => Partial<RootKeyStore>): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const rootKeys: RootKeyStore = {
        findByDigest: (digest) => inner.rootKeys.findByDigest(digest),
        presence: (nowMs) => inner.rootKeys.presence(nowMs),
        announceChange: () => inner.rootKeys.announceChange(),
        retireGenerated: (...retired) => inner.rootKeys.retireGenerated(...retired),
        addFirst: (...first) => inner.rootKeys.addFirst(...first),
      };
      return { ...inner, rootKeys: { ...rootKeys, ...breakIt(rootKeys) } };
    },
  };
}

type RootKeyCommand = CreateRootKey | UpdateRootKey | RevokeRootKey;
type ChangeRootKey = (command: RootKeyCommand) => Promise<Outcome<RootKeyCommand["kind"]>>;

/** Changes root keys in another way than it was asked to. */
export function rootKeyChanges(mistake: string, breakIt: (inner: ChangeRootKey) => ChangeRootKey): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const broken = breakIt((command) => inner.management.change(command));
      const change = (command: Command, record?: IdempotencyRecord) =>
        command.kind === "createRootKey" || command.kind === "updateRootKey" || command.kind === "revokeRootKey"
          ? broken(command)
          : inner.management.change(command, record);
      return { ...inner, management: { ...inner.management, change: change as Store["management"]["change"] } };
    },
  };
}

/** Shows other root keys than there are. */
export function rootKeyPages(mistake: string, show: (page: Answers["rootKeys"]) => Answers["rootKeys"]): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const read = async <Asked extends Query>(query: Asked) => {
        const answer = await inner.management.read(query);
        return query.kind === "rootKeys" ? (show(answer as Answers["rootKeys"]) as Answers[Asked["kind"]]) : answer;
      };
      return { ...inner, management: { ...inner.management, read } };
    },
  };
}

export function feed(
  mistake: string,
  breakIt: (inner: ChangeFeed["read"], store: Store) => ChangeFeed["read"],
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, changes: { read: breakIt(inner.changes.read, inner) } };
    },
  };
}

export function usage(mistake: string, breakIt: (inner: UsageEngine["settle"]) => UsageEngine["settle"]): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, usageLanes: inner.usageLanes.map(({ settle }) => ({ settle: breakIt(settle) })) };
    },
  };
}

export function permits(
  mistake: string,
  breakIt: (inner: PermitEngine["exchange"]) => PermitEngine["exchange"],
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, permitLanes: inner.permitLanes.map(({ exchange }) => ({ exchange: breakIt(exchange) })) };
    },
  };
}

/** Answers one kind of question in another way. */
function answers<Kind extends Query["kind"]>(kind: Kind) {
  type Asked = Extract<Query, { readonly kind: Kind }>;
  type Answer = Promise<Answers[Kind]>;
  return (
    mistake: string,
    breakIt: (inner: (query: Asked) => Answer, query: Asked, store: Store) => Answer,
  ): BrokenStore => ({
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management } = inner;
      const ask = (query: Asked) => management.read(query) as Answer;
      const read = ((query: Query) =>
        query.kind === kind ? breakIt(ask, query as Asked, inner) : management.read(query)) as typeof management.read;
      return { ...inner, management: { ...management, read } };
    },
  });
}

export const lists = answers("keys");
export const eventLists = answers("events");

/** Settles charges by another rule. */
export function settleRule(mistake: string, rule: typeof settle): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { settle: rule }) };
}

/** Settles asks by another rule. */
export function permitRule(mistake: string, rule: typeof exchangePermits): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { exchange: rule }) };
}

/** Changes counters by another rule. */
export function updateRule(mistake: string, rule: typeof updatedCounter): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { update: rule }) };
}

/** Replaces secrets by another rule. */
export function rerollRule(mistake: string, rule: typeof rerolledSecrets): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { reroll: rule }) };
}

export function tidies(mistake: string, breakIt: (inner: Store["tidy"]) => Store["tidy"]): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, tidy: breakIt(inner.tidy) };
    },
  };
}

export function onClock(mistake: string, wrong: (clock: Clock) => () => number): BrokenStore {
  return {
    mistake,
    open: (clock) =>
      createMemoryStore({ nowMs: wrong(clock), monotonicMs: () => clock.monotonicMs(), lateMs: () => 0 }),
  };
}

/** Callers that ask for the same at once share one answer: the effect of reading before writing. */
export function shared<T>(underWay: Map<string, Promise<T>>, name: string, ask: () => Promise<T>): Promise<T> {
  const joined = underWay.get(name);
  if (joined !== undefined) return joined;
  const asked = Promise.resolve()
    .then(ask)
    .finally(() => underWay.delete(name));
  underWay.set(name, asked);
  return asked;
}
