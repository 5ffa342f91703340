import type { NewApi, StoredApi } from "../../src/domain/api.ts";
import type { Answers, PageQuery } from "../../src/store/queries.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { type AnyManagement, type BrokenStore, manages } from "./break-store.ts";

/** Stores something else of an API than it was given. */
function keeps(mistake: string, change: (given: NewApi) => NewApi): BrokenStore {
  return manages(mistake, (inner) => ({
    change(command, record) {
      if (command.kind === "createApi") return inner.change({ ...command, created: change(command.created) }, record);
      return inner.change(command, record);
    },
  }));
}

type ApiPage = Answers["apis"];
type ApisQuery = PageQuery<"apis">;

/** Shows something else of APIs than they have. */
function showsApis(mistake: string, change: (api: StoredApi) => StoredApi): BrokenStore {
  return manages(mistake, (inner) => ({
    async read(query) {
      const answer = await inner.read(query);
      if (query.kind === "api") return answer && change(answer as StoredApi);
      if (query.kind === "apis") return { ...(answer as ApiPage), items: (answer as ApiPage).items.map(change) };
      return answer;
    },
  }));
}

/** Lists something else. */
function lists(mistake: string, list: (ask: (query: ApisQuery) => Promise<ApiPage>, query: ApisQuery) => unknown) {
  return manages(mistake, (inner) => ({
    read: async (query) =>
      query.kind === "apis"
        ? ((await list(async (asked) => (await inner.read(asked)) as ApiPage, query)) as ApiPage)
        : inner.read(query),
  }));
}

async function versionOf(inner: AnyManagement, id: string): Promise<number | undefined> {
  return ((await inner.read({ kind: "api", id })) as StoredApi | undefined)?.version;
}

/** Stores that get APIs wrong. */
export const brokenApis: readonly BrokenStore[] = [
  keeps("loses the name of an API", (given) => ({ ...given, name: undefined })),
  keeps("loses the defaults of an API", (given) => ({ ...given, defaults: {} })),
  keeps("loses that an API requires owners", (given) => ({ ...given, ownersRequired: false })),
  keeps("takes a default counter at 0 for none", (given) => ({
    ...given,
    defaults: { ...given.defaults, remaining: given.defaults.remaining || undefined },
  })),
  keeps("makes APIs of 100 characters", (given) => ({ ...given, id: given.id.slice(0, 100) })),
  manages("takes ids of APIs in any case", (inner) => ({
    read: (query) => inner.read(query.kind === "api" ? { ...query, id: query.id.toLowerCase() } : query),
  })),
  manages("creates an API that exists again", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind !== "createApi" || outcome.outcome !== "conflict") return outcome;
      const { event } = command;
      const { id, name, defaults } = command.created;
      return inner.change({ kind: "updateApi", id, changes: { name, defaults }, event });
    },
  })),
  manages("counts keys as changes of their API", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind === "createKey") {
        const { event, created } = command;
        await inner.change({ kind: "updateApi", id: created.apiId, changes: {}, event });
      }
      return outcome;
    },
  })),
  manages("creates an API that must exist", (inner) => ({
    change: (command, record) =>
      inner.change(command.kind === "createKey" ? { ...command, apiMustExist: false } : command, record),
  })),
  manages("stores a key of an API that must exist, and says that it is missing", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind === "createKey" && outcome.outcome === "missing") {
        await inner.change({ ...command, apiMustExist: false });
      }
      return outcome;
    },
  })),
  manages("removes what an update of an API does not name", (inner) => ({
    change(command, record) {
      if (command.kind !== "updateApi") return inner.change(command, record);
      const changes = { name: null, defaults: {}, ...command.changes };
      return inner.change({ ...command, changes }, record);
    },
  })),
  manages("merges defaults of an API into those before", (inner) => ({
    async change(command, record) {
      if (command.kind !== "updateApi" || command.changes.defaults === undefined) return inner.change(command, record);
      const before = (await inner.read({ kind: "api", id: command.id })) as StoredApi | undefined;
      const defaults = { ...before?.defaults, ...command.changes.defaults };
      return inner.change({ ...command, changes: { ...command.changes, defaults } }, record);
    },
  })),
  manages("updates an API of any version", (inner) => ({
    change: (command, record) =>
      inner.change(command.kind === "updateApi" ? { ...command, ifVersion: undefined } : command, record),
  })),
  manages("takes an unknown API for one of another version", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind !== "updateApi" || outcome.outcome !== "missing") return outcome;
      return { outcome: "conflict", reason: "version" };
    },
  })),
  manages("compares the version of an API before it changes it", (inner) => ({
    async change(command, record) {
      if (command.kind !== "updateApi" || command.ifVersion === undefined) return inner.change(command, record);
      const version = await versionOf(inner, command.id);
      await nextTurn();
      return inner.change(version === command.ifVersion ? { ...command, ifVersion: undefined } : command, record);
    },
  })),
  manages("ignores idempotency of APIs", (inner) => ({
    change: (command, record) => inner.change(command, command.kind === "createApi" ? undefined : record),
  })),
  manages("creates the API of a repeated creation", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind === "createApi" && outcome.outcome === "repeated") await inner.change(command);
      return outcome;
    },
  })),
  showsApis("shows every API as never changed", (api) => ({ ...api, version: 1 })),
  showsApis("shows the creation of an API as its last change", (api) => ({ ...api, updatedAtMs: api.createdAtMs })),
  lists("lists APIs oldest first", async (ask, query) => {
    const page = await ask(query);
    return { ...page, items: page.items.toReversed() };
  }),
  lists("always says that another page of APIs follows", async (ask, query) => {
    const page = await ask(query);
    const last = page.items.at(-1);
    return { ...page, cursor: last && `${last.createdAtMs} ${last.id}` };
  }),
  lists("skips APIs of the same millisecond at the end of a page", async (ask, query) => {
    const page = await ask(query);
    return page.cursor === undefined ? page : { ...page, cursor: `${Number.parseInt(page.cursor, 10)} ` };
  }),
  lists("repeats the last API of a page", async (ask, query) => {
    const page = await ask(query);
    return page.cursor === undefined ? page : { ...page, cursor: `${page.cursor}x` };
  }),
  lists("lists all APIs whichever are asked for", (ask, query) => ask({ ...query, apiIds: undefined })),
  lists("lists all APIs if none is asked for", (ask, query) =>
    ask(query.apiIds?.length === 0 ? { ...query, apiIds: undefined } : query),
  ),
  lists("filters a page of APIs after it was cut", async (ask, { apiIds, ...query }) => {
    const page = await ask(query);
    return { ...page, items: page.items.filter(({ id }) => apiIds?.includes(id) ?? true) };
  }),
  manages("answers to every deletion of an API", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      return command.kind === "deleteApi" && outcome.outcome === "missing" ? { outcome: "done", changed: [] } : outcome;
    },
  })),
  manages("deletes an API that has keys", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind !== "deleteApi" || outcome.outcome !== "conflict") return outcome;
      const { id, event } = command;
      await inner.change({ kind: "stopApi", id, event });
      await inner.change({ kind: "deleteApiKeys", id, limit: 500, event });
      return inner.change(command, record);
    },
  })),
  manages("stops an API that is asked to be deleted and has keys", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      const { event } = command;
      if (command.kind === "deleteApi") await inner.change({ kind: "stopApi", id: command.id, event });
      return outcome;
    },
  })),
  manages("takes keys of an API that was stopped", (inner) => ({
    change: (command, record) =>
      command.kind === "stopApi"
        ? inner.change({ ...command, kind: "updateApi", changes: {} }, record)
        : inner.change(command, record),
  })),
  manages("deletes the keys of an API when it is stopped", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      const { event } = command;
      if (command.kind === "stopApi") {
        await inner.change({ kind: "deleteApiKeys", id: command.id, limit: 500, event });
      }
      return outcome;
    },
  })),
  manages("deletes all keys of an API in one piece", (inner) => ({
    change: (command, record) =>
      inner.change(command.kind === "deleteApiKeys" ? { ...command, limit: 500 } : command, record),
  })),
  manages("deletes keys of an API that was not stopped", (inner) => ({
    async change(command, record) {
      const { event } = command;
      if (command.kind === "deleteApiKeys") await inner.change({ kind: "stopApi", id: command.id, event });
      return inner.change(command, record);
    },
  })),
  manages("tells no digests of the keys of an API", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind !== "deleteApiKeys" || outcome.outcome !== "done") return outcome;
      return { ...outcome, changed: outcome.changed.map(({ keyId }) => ({ keyId, digests: [] })) };
    },
  })),
  manages("deletes an API that was made anew", (inner) => ({
    change: (command, record) =>
      inner.change(command.kind === "deleteApi" ? { ...command, isStopped: false } : command, record),
  })),
  manages("stops an API again when the request is repeated", (inner) => ({
    async change(command, record) {
      const outcome = await inner.change(command, record);
      if (command.kind === "stopApi" && outcome.outcome === "repeated") await inner.change(command);
      return outcome;
    },
  })),
];
