import type { NewApi, StoredApi } from "../../src/domain/api.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { NewKey } from "../../src/domain/key.ts";
import {
  type Command,
  type CreateApi,
  type DeleteApi,
  fieldsOf,
  methodOf,
  resourceOf,
  type StopApi,
  targetIdOf,
  type UpdateApi,
} from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Page, PageQuery } from "../../src/store/queries.ts";

export type ApiCommand = CreateApi | UpdateApi | StopApi | DeleteApi;

/** The APIs of the plain store. */
export class MemoryApis {
  readonly #apis = new Map<string, StoredApi>();
  /** APIs that take no keys any more. */
  readonly #stopped = new Set<string>();

  get(apiId: string): StoredApi | undefined {
    return this.#apis.get(apiId);
  }

  isStopped(apiId: string): boolean {
    return this.#stopped.has(apiId);
  }

  add(created: NewApi, atMs: number): StoredApi {
    const api = { ...created, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
    this.#apis.set(api.id, api);
    return api;
  }

  create({ created, event }: CreateApi): Outcome<"createApi"> {
    if (this.#apis.has(created.id)) return { outcome: "conflict", reason: "apiExists" };
    return { outcome: "done", changed: [], answer: this.add(created, event.atMs) };
  }

  update({ id, ifVersion, changes, event }: Omit<UpdateApi, "kind">): Outcome<"updateApi"> {
    const api = this.#apis.get(id);
    if (api === undefined) return { outcome: "missing" };
    if ((ifVersion ?? api.version) !== api.version) return { outcome: "conflict", reason: "version" };
    const { name = api.name, defaults = api.defaults, ownersRequired = api.ownersRequired } = changes;
    const changed = { name: name ?? undefined, defaults, ownersRequired };
    const updated = { ...api, ...changed, updatedAtMs: event.atMs, version: api.version + 1 };
    this.#apis.set(id, updated);
    return { outcome: "done", changed: [], answer: updated };
  }

  stop({ id, event }: StopApi): Outcome {
    const { outcome } = this.update({ id, changes: {}, event });
    if (outcome !== "done") return { outcome: "missing" };
    this.#stopped.add(id);
    return { outcome, changed: [] };
  }

  delete({ id, isStopped }: DeleteApi, keys: readonly Pick<NewKey, "apiId">[]): Outcome {
    if (!this.#apis.has(id) || (isStopped && !this.isStopped(id))) return { outcome: "missing" };
    if (keys.some(({ apiId }) => apiId === id)) return { outcome: "conflict", reason: "hasKeys" };
    this.#apis.delete(id);
    this.#stopped.delete(id);
    return { outcome: "done", changed: [] };
  }

  list({ limit, after, apiIds }: PageQuery<"apis">): Page<StoredApi> {
    // An id may have spaces too.
    const [, afterMs = "Infinity", afterId = ""] = /^(\d+) (.*)$/s.exec(after ?? "") ?? [];
    const isBefore = ({ createdAtMs, id }: StoredApi) =>
      createdAtMs < Number(afterMs) || (createdAtMs === Number(afterMs) && id < afterId);
    const found = [...this.#apis.values()]
      .filter((api) => isBefore(api) && (apiIds?.includes(api.id) ?? true))
      .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return { items: page, cursor: found.length > limit && last ? `${last.createdAtMs} ${last.id}` : undefined };
  }
}

export function eventOfApi(command: ApiCommand, version: number): StoredEvent {
  const apiId = targetIdOf(command);
  return { ...command.event, method: methodOf(command), apiId, targetId: apiId, fields: fieldsOf(command), version };
}

export function isOfApi(command: Command): command is ApiCommand {
  return resourceOf(command) === "api" && command.kind !== "deleteApiKeys";
}
