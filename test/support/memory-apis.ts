import type { StoredApi } from "../../src/domain/api.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { KeyChange } from "../../src/store/changes.ts";
import type { Command, CreateApi, StopApi, UpdateApi } from "../../src/store/commands.ts";
import { fieldsOf, methodOf } from "../../src/store/events.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { ApiPage, ApisQuery } from "../../src/store/queries.ts";

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

  add({ apiId: id, name, defaults, event: { atMs } }: Omit<CreateApi, "kind">): StoredApi {
    const api = { id, name, defaults, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
    this.#apis.set(id, api);
    return api;
  }

  create(command: CreateApi): Outcome<"createApi"> {
    if (this.#apis.has(command.apiId)) return { outcome: "conflict", reason: "apiExists" };
    return { outcome: "done", changed: [], answer: this.add(command) };
  }

  update({ apiId, ifVersion, changes, event }: Omit<UpdateApi, "kind">): Outcome<"updateApi"> {
    const api = this.#apis.get(apiId);
    if (api === undefined) return { outcome: "missing" };
    if ((ifVersion ?? api.version) !== api.version) return { outcome: "conflict", reason: "version" };
    const { name = api.name, defaults = api.defaults } = changes;
    const updated = { ...api, name: name ?? undefined, defaults, updatedAtMs: event.atMs, version: api.version + 1 };
    this.#apis.set(apiId, updated);
    return { outcome: "done", changed: [], answer: updated };
  }

  stop({ apiId, event }: StopApi): Outcome {
    const { outcome } = this.update({ apiId, changes: {}, event });
    if (outcome !== "done") return { outcome: "missing" };
    this.#stopped.add(apiId);
    return { outcome, changed: [] };
  }

  delete(apiId: string): void {
    this.#apis.delete(apiId);
    this.#stopped.delete(apiId);
  }

  list({ limit, after, within }: ApisQuery): ApiPage {
    const isBefore = ({ createdAtMs, id }: StoredApi) =>
      after === undefined || createdAtMs < after.createdAtMs || (createdAtMs === after.createdAtMs && id < after.apiId);
    const found = [...this.#apis.values()]
      .filter((api) => isBefore(api) && (within?.includes(api.id) ?? true))
      .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1));
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const isMore = found.length > limit && last !== undefined;
    return { apis: page, ...(isMore && { next: { createdAtMs: last.createdAtMs, apiId: last.id } }) };
  }
}

/** Of the API, or of the keys that were deleted with it. */
export function eventsOfApi(
  command: Extract<Command, { readonly apiId: string }>,
  version: number,
  deleted: readonly KeyChange[],
  versionOf: (keyId: string) => number,
): StoredEvent[] {
  const { apiId, event } = command;
  const common = { ...event, method: methodOf[command.kind], apiId, fields: fieldsOf(command) };
  if (command.kind !== "deleteApiKeys") return [{ ...common, targetId: apiId, version }];
  return deleted.map(({ keyId: targetId }) => ({
    ...common,
    id: `${event.id}_${targetId}`,
    targetId,
    version: versionOf(targetId),
  }));
}
