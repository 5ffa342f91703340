import { lastKnownBalance, type NewKey, type StoredKey } from "../../src/domain/key.ts";
import { limitsOfOwner } from "../../src/domain/limits.ts";
import { concernsApi, type Owner, type StoredOwner } from "../../src/domain/owner.ts";
import { counterOfOwner } from "../../src/domain/subject.ts";
import { newCounter, refilled } from "../../src/domain/usage.ts";
import type { Change } from "../../src/store/changes.ts";
import {
  type Command,
  type CreateOwner,
  type DeleteOwner,
  fieldsOf,
  type KeysOfOwner,
  methodOf,
  resourceOf,
  type StopOwner,
  type UpdateOwner,
  type UpdateOwnerRemaining,
} from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Page, PageQuery } from "../../src/store/queries.ts";
import type { MemoryCounters } from "./memory-counters.ts";
import type { KeptEvent } from "./memory-lists.ts";
import type { updatedCounter, withRefill } from "./memory-rules.ts";
import type { MemoryWindows } from "./memory-windows.ts";

export type OwnerCommand = CreateOwner | UpdateOwner | UpdateOwnerRemaining | StopOwner | DeleteOwner;

interface Parts {
  readonly counters: MemoryCounters;
  readonly windows: MemoryWindows;
  readonly update: typeof updatedCounter;
  readonly refill: typeof withRefill;
  readonly nowMs: () => number;
  readonly keys: () => readonly Pick<NewKey, "ownerId" | "apiId" | "enabled">[];
  /** Called with each change, and its event. */
  readonly onChange: (change: Extract<Change, { kind: "owner" }>, event: KeptEvent) => void;
}

interface KeptOwner extends Omit<StoredOwner, "counter"> {
  /** The id of the event that made it. */
  readonly listId: string;
}

/** The owners of the plain store. */
export class MemoryOwners {
  readonly #owners = new Map<string, KeptOwner>();
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  has(ownerId: string | undefined): boolean {
    return ownerId !== undefined && this.#owners.has(ownerId);
  }

  find(ownerId: string): Owner | undefined {
    const kept = this.#owners.get(ownerId);
    if (kept === undefined) return undefined;
    const { id, enabled, apiIds } = kept;
    const counter = this.#parts.counters.get(counterOfOwner(id));
    const rateLimits = kept.rateLimits && limitsOfOwner(id, kept.rateLimits);
    return { id, enabled, apiIds, rateLimits, counter: counter && lastKnownBalance(counter) };
  }

  /** The owner of this key, if its record concerns keys of the same API. */
  readFor(key: Pick<StoredKey, "ownerId" | "apiId"> | undefined): StoredOwner | undefined {
    const owner = key?.ownerId === undefined ? undefined : this.read(key.ownerId);
    return owner && key && concernsApi(owner, key.apiId) ? owner : undefined;
  }

  read(ownerId: string): StoredOwner | undefined {
    const kept = this.#owners.get(ownerId);
    if (kept === undefined) return undefined;
    const { listId: _, ...visible } = kept;
    const counter = this.#parts.counters.get(counterOfOwner(ownerId));
    return { ...visible, counter: counter && refilled(counter, this.#parts.nowMs()) };
  }

  list({ limit, after, apiIds: within }: PageQuery<"owners">): Page<StoredOwner> {
    const found = [...this.#owners.values()]
      .filter(({ apiIds }) => within === undefined || apiIds?.every((apiId) => within.includes(apiId)))
      .filter(({ listId }) => after === undefined || listId < after)
      .sort((a, b) => (a.listId < b.listId ? 1 : -1));
    const page = found.slice(0, limit);
    const items = page.map(({ id }) => this.read(id) as StoredOwner);
    return { items, cursor: found.length > limit ? page.at(-1)?.listId : undefined };
  }

  /** The window rules of its limits. */
  rulesOf(ownerId: string) {
    return limitsOfOwner(ownerId, this.#owners.get(ownerId)?.rateLimits ?? []);
  }

  change(command: OwnerCommand): Outcome<OwnerCommand["kind"]> {
    if (command.kind === "createOwner") return this.#create(command);
    const { id, ifVersion, event } = command;
    const owner = this.#owners.get(id);
    if (owner === undefined) return { outcome: "missing" };
    if ((ifVersion ?? owner.version) !== owner.version) return { outcome: "conflict", reason: "version" };
    const changed = { ...owner, version: owner.version + 1, updatedAtMs: event.atMs };
    const outcome = this.#changeKept(command, changed);
    if (outcome.outcome === "done") this.#note(command, this.#owners.get(id) ?? changed);
    return outcome;
  }

  #create(command: CreateOwner): Outcome<"createOwner"> {
    const { counters, nowMs } = this.#parts;
    const { id: listId, atMs } = command.event;
    const { remaining, refill, ...fields } = command.created;
    const { id } = fields;
    if (this.#owners.has(id)) return { outcome: "conflict", reason: "ownerExists" };
    const kept = { ...fields, listId, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
    this.#keep(kept);
    counters.endReadings(counterOfOwner(id));
    if (remaining !== undefined) counters.make(counterOfOwner(id), newCounter(remaining, refill, nowMs()), nowMs());
    this.#note(command, kept);
    return { outcome: "done", changed: [], answer: this.read(id) as StoredOwner };
  }

  #changeKept(
    command: Exclude<OwnerCommand, CreateOwner>,
    owner: KeptOwner,
  ): Outcome<"updateOwner" | "updateOwnerRemaining" | "stopOwner" | "deleteOwner"> {
    switch (command.kind) {
      case "updateOwner":
        return this.#update(command.changes, owner);
      case "stopOwner":
        return this.#update({ enabled: false }, owner);
      case "updateOwnerRemaining":
        return this.#updateRemaining(command, owner);
      case "deleteOwner": {
        const keys = command.unless === undefined ? 0 : this.#countKeys(owner.id, command.unless);
        if (keys > 0) return { outcome: "conflict", reason: "ownerHasKeys", keys };
        this.#owners.delete(owner.id);
        this.#parts.counters.remove(counterOfOwner(owner.id), owner, this.#parts.nowMs());
        this.#parts.windows.deleteOf(counterOfOwner(owner.id));
        return { outcome: "done", changed: [] };
      }
    }
  }

  #countKeys(ownerId: string, { apiIds, enabled }: KeysOfOwner): number {
    const named = this.#parts.keys().filter((key) => key.ownerId === ownerId && (!enabled || key.enabled));
    return named.filter(({ apiId }) => apiIds === undefined || apiIds.includes(apiId)).length;
  }

  #update({ refill: rule, ...fields }: UpdateOwner["changes"], owner: KeptOwner): Outcome<"updateOwner"> {
    const { counters, refill, nowMs } = this.#parts;
    const subject = counterOfOwner(owner.id);
    const counter = counters.get(subject);
    if (rule && counter === undefined) return { outcome: "conflict", reason: "noCounter" };
    if (counter !== undefined) counters.set(subject, refill(counter, rule, nowMs()));
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const values = Object.fromEntries(given.map(([name, value]) => [name, value ?? undefined]));
    this.#keep({ ...owner, ...values });
    return { outcome: "done", changed: [], answer: this.read(owner.id) as StoredOwner };
  }

  #updateRemaining(command: UpdateOwnerRemaining, owner: KeptOwner): Outcome<"updateOwnerRemaining"> {
    const { counters, update, nowMs } = this.#parts;
    const subject = counterOfOwner(owner.id);
    const counter = update(counters.get(subject), command, nowMs());
    if (typeof counter === "string") return { outcome: "conflict", reason: counter };
    counters.change(subject, counter, owner, nowMs());
    this.#keep(owner);
    return { outcome: "done", changed: [], answer: { remaining: counter?.remaining, version: owner.version } };
  }

  #note(command: OwnerCommand, { id, apiIds, version }: KeptOwner): void {
    const { kind, event } = command;
    const [method, fields, apiId] = [methodOf(command), fieldsOf(command), apiIds?.toSorted()[0]];
    const noted = { ...event, method, targetId: id, apiId, apiIds, fields, version };
    this.#parts.onChange({ kind: "owner", ownerId: id, isNew: kind === "createOwner" }, noted);
  }

  #keep(owner: KeptOwner): void {
    const { windows, nowMs } = this.#parts;
    this.#owners.set(owner.id, owner);
    windows.addForOwner(this.rulesOf(owner.id), nowMs());
  }
}

export function isOfOwner(command: Command): command is OwnerCommand {
  return resourceOf(command) === "owner" && command.kind !== "endOwnerKeys";
}
