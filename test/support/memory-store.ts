import type { Clock } from "../../src/ambient/clock.ts";
import { toIpRanges } from "../../src/domain/ip-allow.ts";
import { type Key, type KeyFieldChanges, lastKnownBalance, type NewKey, type StoredKey } from "../../src/domain/key.ts";
import { limitsOfKey } from "../../src/domain/limits.ts";
import type { exchangePermits } from "../../src/domain/permit-window.ts";
import { counterOfOwner } from "../../src/domain/subject.ts";
import { newCounter, refilled, type settle } from "../../src/domain/usage.ts";
import {
  type Command,
  type CreateKey,
  fieldsOf,
  type IdempotencyRecord,
  type ImportKeys,
  isDisabling,
  methodOf,
  resourceOf,
  targetIdOf,
} from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Answers, Query } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import { eventOfApi, isOfApi, MemoryApis } from "./memory-apis.ts";
import { apisOf, MemoryCounters } from "./memory-counters.ts";
import { type EndingCommand, eventOfEnded, isEnding, keysToEnd } from "./memory-ended-keys.ts";
import { MemoryFeed } from "./memory-feed.ts";
import { type KeptEvent, listEvents, listKeys } from "./memory-lists.ts";
import { isOfOwner, MemoryOwners } from "./memory-owners.ts";
import { isOfRootKey, MemoryRootKeys } from "./memory-root-keys.ts";
import { rerolledSecrets, updatedCounter, withRefill } from "./memory-rules.ts";
import { MemorySecrets } from "./memory-secrets.ts";
import { limitsOf, MemoryWindows } from "./memory-windows.ts";

/** Rules that broken stores replace. */
export interface StoreRules {
  readonly settle?: typeof settle;
  readonly exchange?: typeof exchangePermits;
  readonly update?: typeof updatedCounter;
  readonly refill?: typeof withRefill;
  readonly reroll?: typeof rerolledSecrets;
  readonly Counters?: typeof MemoryCounters;
}

/** The simplest store that keeps the contract. Tests compare the SQL engines with it. */
export function createMemoryStore(clock: Clock, rules: StoreRules = {}): Store {
  const { update = updatedCounter, refill = withRefill, reroll = rerolledSecrets } = rules;
  const apis = new MemoryApis();
  const keys = new Map<string, NewKey>();
  const secrets = new MemorySecrets();
  const counters = new (rules.Counters ?? MemoryCounters)(rules.settle);
  const windows = new MemoryWindows(rules.exchange);
  const idempotency = new Map<string, IdempotencyRecord>();
  const changes = new MemoryFeed();
  const rootKeys = new MemoryRootKeys(() => changes.push({ kind: "rootKeys" }));
  const events = new Map<string, KeptEvent>();
  const owners = new MemoryOwners({
    counters,
    windows,
    update,
    refill,
    nowMs: () => clock.nowMs(),
    keys: () => [...keys.values()],
    onChange(change, event) {
      changes.push(change);
      events.set(event.id, event);
    },
  });
  /** Of keys that were changed. */
  const changed = new Map<string, Pick<StoredKey, "version" | "updatedAtMs">>();

  function create({ created: key, event, apiMustExist = false }: CreateKey): Outcome {
    if (apis.get(key.apiId) === undefined) {
      if (apiMustExist) return { outcome: "missing" };
      apis.add({ id: key.apiId, name: undefined, defaults: {}, ownersRequired: false }, event.atMs);
    }
    if (apis.isStopped(key.apiId)) return { outcome: "conflict", reason: "apiIsDeleting" };
    keys.set(key.id, key);
    const { secretDigest: digest, start, createdAtMs } = key;
    secrets.set(key.id, [{ digest, start, createdAtMs, expiresAtMs: undefined }]);
    if (key.remaining !== undefined) counters.set(key.id, newCounter(key.remaining, key.refill, clock.nowMs()));
    windows.addFor(key);
    return { outcome: "done", changed: [] };
  }

  function endKeys(command: EndingCommand): Outcome<"deleteApiKeys" | "endOwnerKeys"> {
    const { id, event } = command;
    const found = keysToEnd(command, {
      keys: [...keys.values()],
      owner: owners.read(id),
      isStopped: apis.isStopped(id),
    });
    if ("outcome" in found) return found;
    const changed = found.ended.map((key) => {
      const noted = eventOfEnded(command, key, noteChange(key.id, event.atMs));
      events.set(noted.id, noted);
      const digests = secrets.of(key.id).map(({ digest }) => digest);
      if (isDisabling(command)) keys.set(key.id, { ...key, enabled: false });
      else deleteKey(key);
      return { keyId: key.id, digests };
    });
    changes.push(...changed.map((change) => ({ kind: "key", ...change }) as const));
    return { outcome: "done", changed, answer: { cursor: found.cursor } };
  }

  function importKeys({ apiId, apiMustExist, keys: given }: ImportKeys): Outcome<"importKeys"> {
    if (apiMustExist && apis.get(apiId) === undefined) return { outcome: "missing" };
    if (apis.isStopped(apiId)) return { outcome: "conflict", reason: "apiIsDeleting" };
    const stored = given.filter(({ eventId: _, ...key }) => {
      if (secrets.find(key.secretDigest)[1] !== undefined) return false;
      create({ kind: "createKey", created: key, event: { id: "", atMs: key.createdAtMs, actor: "" } });
      return true;
    });
    changes.hasImportedKeys ||= stored.length > 0;
    return { outcome: "done", changed: [], answer: { keyIds: stored.map(({ id }) => id) } };
  }

  function keptAt(lookup: string, nowMs: number): IdempotencyRecord | undefined {
    const kept = idempotency.get(lookup);
    return kept !== undefined && kept.expiresAtMs > nowMs ? kept : undefined;
  }

  async function read(query: Query): Promise<Answers[Query["kind"]]> {
    switch (query.kind) {
      case "keptAnswer":
        return keptAt(query.lookup, query.nowMs);
      case "key":
        return storedKey(query.id);
      case "keyOfSecret":
        return storedKey(secrets.keyIdOf(query.digest, query.nowMs));
      case "keys":
        return listKeys(keys.values(), query, storedKey);
      case "events":
        return listEvents(events.values(), query);
      case "api":
        return apis.get(query.id);
      case "apis":
        return apis.list(query);
      case "owner":
        return owners.read(query.id);
      case "ownerOfKey":
        return owners.readFor(storedKey(query.keyId));
      case "owners":
        return owners.list(query);
      case "rootKey":
        return rootKeys.read(query.id);
      case "rootKeys":
        return rootKeys.list(query);
      case "spending":
        return counters.read(
          query,
          (id) => (query.of === "owner" ? owners.read(id) : apisOf(keys.get(id))),
          clock.nowMs(),
        );
    }
  }

  function storedKey(keyId: string): StoredKey | undefined {
    const key = keys.get(keyId);
    if (key === undefined) return undefined;
    const { secretDigest: _, remaining: __, refill: ___, ...visible } = key;
    const counter = counters.get(keyId);
    return {
      ...visible,
      ...(changed.get(keyId) ?? { version: 1, updatedAtMs: key.createdAtMs }),
      counter: counter && refilled(counter, clock.nowMs()),
      secrets: secrets.of(keyId).map(({ digest: ____, ...shown }) => shown),
    };
  }

  async function findByDigest(digest: string): Promise<Key | undefined> {
    const [keyId, secret] = secrets.find(digest);
    const key = keys.get(keyId);
    if (key === undefined) return undefined;
    const { start: _, createdAtMs: __, secretDigest: ___, remaining: ____, refill: _____, ...visible } = key;
    const rateLimits = key.rateLimits && limitsOfKey(keyId, key.rateLimits);
    const ipAllow = key.ipAllow && toIpRanges(key.ipAllow);
    const hasOwnerRecord = owners.has(key.ownerId);
    const counter = counters.get(key.id);
    const secretExpiresAtMs = secret?.expiresAtMs;
    const balance = counter && lastKnownBalance(counter);
    return { ...visible, hasOwnerRecord, rateLimits, ipAllow, counter: balance, secretExpiresAtMs };
  }

  async function change(command: Command, record?: IdempotencyRecord): Promise<Outcome<Command["kind"]>> {
    const kept = record && keptAt(record.lookup, record.createdAtMs);
    if (kept !== undefined) return { outcome: "repeated", record: kept };
    const targetId = targetIdOf(command);
    const before: { readonly apiId?: string } | undefined = keys.get(targetId);
    const versionBefore = (rootKeys.read(targetId) ?? apis.get(targetId))?.version ?? 0;
    const outcome = carryOut(command);
    if (outcome.outcome === "done" && isOfApi(command)) {
      events.set(command.event.id, eventOfApi(command, versionBefore + 1));
    } else if (outcome.outcome === "done" && !isOfOwner(command) && !isEnding(command))
      noteEvent(command, before, versionBefore);
    if (record !== undefined && outcome.outcome === "done") idempotency.set(record.lookup, record);
    return outcome;
  }

  function carryOut(command: Command): Outcome<Command["kind"]> {
    if (isOfOwner(command)) return owners.change(command);
    switch (command.kind) {
      case "createKey":
        return create(command);
      case "importKeys":
        return importKeys(command);
      case "createApi":
        return apis.create(command);
      case "updateApi":
        return apis.update(command);
      case "stopApi":
        return apis.stop(command);
      case "deleteApiKeys":
      case "endOwnerKeys":
        return endKeys(command);
      case "deleteApi":
        return apis.delete(command, [...keys.values()]);
    }
    if (isOfRootKey(command)) return rootKeys.change(command);
    const { id: keyId } = command;
    const key = keys.get(keyId);
    if (key === undefined) return { outcome: "missing" };
    const { version: current = 1 } = changed.get(keyId) ?? {};
    const asked = "ifVersion" in command ? command.ifVersion : undefined;
    if ((asked ?? current) !== current) return { outcome: "conflict", reason: "version" };
    const announced = { keyId, digests: secrets.of(keyId).map(({ digest }) => digest) };
    switch (command.kind) {
      case "updateRemaining": {
        const counter = update(counters.get(keyId), command, clock.nowMs());
        if (typeof counter === "string") return { outcome: "conflict", reason: counter };
        counters.change(keyId, counter, apisOf(key), clock.nowMs());
        const version = noteChange(keyId, command.event.atMs);
        changes.push({ kind: "key", ...announced });
        return { outcome: "done", changed: [announced], answer: { remaining: counter?.remaining, version } };
      }
      case "rerollKey":
        secrets.set(keyId, reroll(secrets.of(keyId), command));
        keys.set(keyId, { ...key, start: command.start });
        noteChange(keyId, command.event.atMs);
        break;
      case "deleteKey":
        noteChange(keyId, command.event.atMs);
        deleteKey(key);
        break;
      case "updateKey": {
        const counter = counters.get(keyId);
        if (command.changes.refill && counter === undefined) return { outcome: "conflict", reason: "noCounter" };
        updateFields(key, command.changes);
        if (counter !== undefined) counters.set(keyId, refill(counter, command.changes.refill, clock.nowMs()));
        noteChange(keyId, command.event.atMs);
        changes.push({ kind: "key", ...announced });
        return { outcome: "done", changed: [announced], answer: storedKey(keyId) as StoredKey };
      }
    }
    changes.push({ kind: "key", ...announced });
    return { outcome: "done", changed: [announced] };
  }

  function noteEvent(command: Command, before: { readonly apiId?: string } | undefined, versionBefore: number): void {
    if (command.kind === "importKeys") {
      for (const { id: targetId, apiId, eventId } of command.keys.filter(({ id }) => keys.has(id))) {
        const event = { ...command.event, id: eventId, method: methodOf(command), targetId, apiId };
        events.set(eventId, { ...event, fields: [], version: 1 });
      }
      return;
    }
    const targetId = targetIdOf(command);
    const isOfKey = resourceOf(command) === "key";
    const { apiId }: { readonly apiId?: string } = keys.get(targetId) ?? before ?? {};
    const version = isOfKey ? (changed.get(targetId)?.version ?? 1) : versionBefore + 1;
    const [method, fields] = [methodOf(command), fieldsOf(command)];
    events.set(command.event.id, { ...command.event, method, targetId, apiId, fields, version });
  }

  /** Answers the new version. */
  function noteChange(keyId: string, updatedAtMs: number): number {
    const version = (changed.get(keyId)?.version ?? 1) + 1;
    changed.set(keyId, { version, updatedAtMs });
    return version;
  }

  function updateFields(key: NewKey, { refill: _, ...fields }: KeyFieldChanges): void {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const values = Object.fromEntries(given.map(([name, value]) => [name, value ?? undefined]));
    keys.set(key.id, { ...key, ...values });
    windows.addFor({ ...key, ...values });
  }

  function deleteKey(key: NewKey): void {
    const { id } = key;
    keys.delete(id);
    secrets.delete(id);
    counters.remove(id, apisOf(key), clock.nowMs());
    windows.deleteOf(id);
  }

  function rulesOf(holder: string) {
    const key = keys.get(holder);
    return key === undefined ? owners.rulesOf(holder.slice(counterOfOwner("").length)) : limitsOf(key);
  }

  return {
    keys: { findByDigest, findOwner: async (ownerId) => owners.find(ownerId) },
    management: {
      change: async (command, record) => (await change(command, record)) as Outcome<(typeof command)["kind"]>,
      read: <Asked extends Query>(query: Asked) => read(query) as Promise<Answers[Asked["kind"]]>,
    },
    rootKeys,
    changes,
    usageLanes: [{ settle: async (charges) => charges.map((charge) => counters.settle(charge, clock.nowMs())) }],
    permitLanes: [{ exchange: async (asks) => asks.map((ask) => windows.exchange(ask, rulesOf, clock.nowMs())) }],
    async tidy(nowMs, { eventsBeforeMs = 0 } = {}) {
      for (const [id, { atMs }] of events) if (atMs < eventsBeforeMs) events.delete(id);
      for (const [lookup, { expiresAtMs }] of idempotency) if (expiresAtMs <= nowMs) idempotency.delete(lookup);
      secrets.tidy(nowMs);
      windows.tidy(nowMs);
    },
    close: async () => {},
  };
}
