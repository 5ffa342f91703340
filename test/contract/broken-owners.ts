import type { MaybePromise } from "../../src/domain/maybe-promise.ts";
import type { NewOwner, StoredOwner } from "../../src/domain/owner.ts";
import { type Command, resourceOf } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Answers, PageQuery } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { deleteKey, listPages } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type AnyManagement, type BrokenStore, eventLists, feed, manages, permits, usage } from "./break-store.ts";

type OwnerCommand = Extract<Command, { kind: `${string}Owner${string}` }>;
type OwnerPage = Answers["owners"];
type OwnersQuery = PageQuery<"owners">;

/** Stores something else than it was given. */
function keeps(mistake: string, change: (owner: NewOwner) => NewOwner): BrokenStore {
  return manages(mistake, (inner) => ({
    change: (command, record) =>
      inner.change(command.kind === "createOwner" ? { ...command, created: change(command.created) } : command, record),
  }));
}

/** Carries one kind of command out in another way. */
function changes<Kind extends OwnerCommand["kind"]>(
  mistake: string,
  kind: Kind,
  breakIt: (
    command: Extract<OwnerCommand, { readonly kind: Kind }>,
    inner: AnyManagement,
    store: Store,
  ) => MaybePromise<OwnerCommand | Outcome<Command["kind"]>>,
): BrokenStore {
  return manages(mistake, (inner, store) => ({
    async change(command, record) {
      if (command.kind !== kind) return inner.change(command, record);
      const made = await breakIt(command as Extract<OwnerCommand, { readonly kind: Kind }>, inner, store);
      return "kind" in made ? inner.change(made, record) : made;
    },
  }));
}

/** Shows something else of an owner than it has. */
function shows(mistake: string, change: (owner: StoredOwner, store: Store) => Promise<StoredOwner> | StoredOwner) {
  return manages(mistake, (inner, store) => ({
    async read(query) {
      const answer = await inner.read(query);
      if (query.kind === "owner") return answer && change(answer as StoredOwner, store);
      if (query.kind !== "owners") return answer;
      const { items, ...page } = answer as OwnerPage;
      return { ...page, items: await Promise.all(items.map((owner) => change(owner, store))) };
    },
  }));
}

/** Lists something else. */
function lists(
  mistake: string,
  list: (ask: (query: OwnersQuery) => Promise<OwnerPage>, query: OwnersQuery) => Promise<OwnerPage>,
): BrokenStore {
  return manages(mistake, (inner) => ({
    read: (query) =>
      query.kind === "owners"
        ? list(async (asked) => (await inner.read(asked)) as OwnerPage, query)
        : inner.read(query),
  }));
}

/** Finds keys or owners in another way. */
function finds(mistake: string, breakIt: (inner: Store["keys"]) => Partial<Store["keys"]>): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, keys: { ...inner.keys, ...breakIt(inner.keys) } };
    },
  };
}

async function ownerOf(inner: AnyManagement, id: string): Promise<StoredOwner | undefined> {
  return (await inner.read({ kind: "owner", id })) as StoredOwner | undefined;
}

function ownersTold(mistake: string, isNew: (told: boolean) => boolean | undefined): BrokenStore {
  return feed(mistake, (read) => async (since) => {
    const news = await read(since);
    if (news.changed === "everything") return news;
    const changed = news.changed.flatMap((change) => {
      const told = change.kind === "owner" ? isNew(change.isNew) : false;
      return told === undefined ? [] : [change.kind === "owner" ? { ...change, isNew: told } : change];
    });
    return { ...news, changed };
  });
}

/** Stores that get owners wrong. */
export const brokenOwners: readonly BrokenStore[] = [
  keeps("loses the metadata of an owner", (owner) => ({ ...owner, meta: {} })),
  keeps("sorts the APIs of an owner", (owner) => ({ ...owner, apiIds: owner.apiIds?.toSorted() })),
  keeps("takes an owner's counter at 0 for none", (owner) => ({ ...owner, remaining: owner.remaining || undefined })),
  keeps("makes owners of 100 characters", (owner) => ({ ...owner, id: owner.id.slice(0, 100) })),
  finds("takes ids of owners in any case", (inner) => ({ findOwner: (id) => inner.findOwner(id.toLowerCase()) })),
  finds("answers look-ups of owners at once with the first one", (inner) => {
    let first: ReturnType<typeof inner.findOwner> | undefined;
    return {
      findOwner(id) {
        first ??= inner.findOwner(id);
        void nextTurn().then(() => {
          first = undefined;
        });
        return first;
      },
    };
  }),
  finds("takes every key with an owner for one whose owner has a record", (inner) => ({
    async findByDigest(digest) {
      const key = await inner.findByDigest(digest);
      return key && { ...key, hasOwnerRecord: key.ownerId !== undefined };
    },
  })),
  finds("remembers whether an owner has a record", (inner) => {
    const known = new Map<string, boolean>();
    return {
      async findByDigest(digest) {
        const key = await inner.findByDigest(digest);
        if (key !== undefined && !known.has(digest)) known.set(digest, key.hasOwnerRecord);
        return key && { ...key, hasOwnerRecord: known.get(digest) as boolean };
      },
    };
  }),
  changes("creates an owner that exists again", "createOwner", async (command, inner) => {
    await inner.change({ kind: "deleteOwner", id: command.created.id, event: command.event });
    return command;
  }),
  manages("ignores idempotency of owners", (inner) => ({
    change: (command, record) => inner.change(command, resourceOf(command) === "owner" ? undefined : record),
  })),
  changes("removes what an update of an owner does not name", "updateOwner", (command) => ({
    ...command,
    changes: { meta: {}, apiIds: null, rateLimits: null, ...command.changes },
  })),
  changes("updates an owner of any version", "updateOwner", (command) => ({ ...command, ifVersion: undefined })),
  changes("changes the counter of an owner of any version", "updateOwnerRemaining", (command) => ({
    ...command,
    ifVersion: undefined,
  })),
  changes("deletes an owner of any version", "deleteOwner", (command) => ({ ...command, ifVersion: undefined })),
  changes("deletes an owner that keys name", "deleteOwner", (command) => ({ ...command, unless: undefined })),
  changes("keeps an owner for keys of other APIs", "deleteOwner", ({ unless, ...command }) => ({
    ...command,
    unless: unless && { ...unless, apiIds: undefined },
  })),
  changes("keeps an owner for keys that are disabled", "deleteOwner", ({ unless, ...command }) => ({
    ...command,
    unless: unless && { ...unless, enabled: undefined },
  })),
  changes("compares the version of an owner before it changes it", "updateOwner", async (command, inner) => {
    const owner = await ownerOf(inner, command.id);
    await nextTurn();
    return owner?.version === command.ifVersion ? { ...command, ifVersion: undefined } : command;
  }),
  changes("takes an unknown owner for one of another version", "updateOwner", async (command, inner) =>
    (await ownerOf(inner, command.id)) === undefined ? { outcome: "conflict", reason: "version" } : command,
  ),
  changes("deletes the keys of an owner with it", "deleteOwner", async (command, { change }, { management }) => {
    const pages = await listPages(management, { ownerId: command.id });
    for (const { id } of pages.flatMap(({ items }) => items)) await deleteKey(management, id);
    return change(command);
  }),
  {
    mistake: "hides a deleted owner, and leaves its counter and windows",
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management, keys } = inner;
      const deleted = new Set<string>();
      const change = async (...[command, record]: Parameters<AnyManagement["change"]>) => {
        if (command.kind === "deleteOwner") {
          deleted.add(command.id);
          return { outcome: "done", changed: [] };
        }
        if (command.kind === "createOwner" && deleted.delete(command.created.id)) {
          const { id, remaining: _, refill: __, ...fields } = command.created;
          return management.change({ kind: "updateOwner", id, changes: fields, event: command.event });
        }
        return management.change(command, record);
      };
      return {
        ...inner,
        keys: { ...keys, findOwner: (id) => (deleted.has(id) ? Promise.resolve(undefined) : keys.findOwner(id)) },
        management: { ...management, change: change as typeof management.change },
      };
    },
  },
  usage("counts for all owners together", (settle) => {
    let first: string | undefined;
    return (charges) =>
      settle(
        charges.map((charge) => {
          if (!charge.subject.startsWith("c/")) return charge;
          first ??= charge.subject;
          return { ...charge, subject: first };
        }),
      );
  }),
  usage("takes what a key and its owner pay from the key alone", (settle) => async (charges) => {
    const results = await settle(charges.map(({ shared: _, ...charge }) => charge));
    return results.map((result, i) =>
      result.outcome === "settled" && charges[i]?.shared !== undefined ? { ...result, sharedRemaining: 1 } : result,
    );
  }),
  changes("takes an owner's counter down to 0 at most", "updateOwnerRemaining", async (command, inner) => {
    const { counter } = (await ownerOf(inner, command.id)) ?? {};
    if (command.op !== "decrement" || counter === undefined || command.value === undefined) return command;
    return { ...command, value: Math.min(counter.remaining, command.value) };
  }),
  changes("gives an owner a counter by adding to it", "updateOwnerRemaining", async (command, inner) => {
    const owner = await ownerOf(inner, command.id);
    return owner?.counter === undefined && command.op === "increment" ? { ...command, op: "set" } : command;
  }),
  changes("reads an owner's counter before it changes it", "updateOwnerRemaining", async (command, inner) => {
    const { counter } = (await ownerOf(inner, command.id)) ?? {};
    if (counter === undefined || command.value === undefined || command.op === "set") return command;
    await nextTurn();
    const value = counter.remaining + (command.op === "increment" ? command.value : -command.value);
    return { ...command, op: "set", value };
  }),
  shows("shows an owner without the refill that is due", async (owner, { keys }) => {
    const { counter } = (await keys.findOwner(owner.id)) ?? {};
    return { ...owner, counter: owner.counter && { ...owner.counter, ...counter } };
  }),
  permits("counts all limits of an owner in one window", (exchange) => (asks) => {
    const oneOf = (subject: string) => subject.replace(/^o\/(second|b)\//, (_, name) => `o/${names[name]}/`);
    const names: Readonly<Record<string, string>> = { second: "minute", b: "a" };
    return exchange(asks.map((ask) => ({ ...ask, subject: oneOf(ask.subject) })));
  }),
  changes("begins new windows with changed limits of an owner", "updateOwner", async (command, inner) => {
    const owner = await ownerOf(inner, command.id);
    if (owner === undefined || !command.changes.rateLimits) return command;
    const { counter, createdAtMs: _, updatedAtMs: __, version: ___, ...fields } = owner;
    const { event, id } = command;
    await inner.change({ kind: "deleteOwner", id, event });
    const remade = { ...fields, remaining: counter?.remaining, refill: undefined };
    await inner.change({ kind: "createOwner", created: remade, event });
    return { ...command, ifVersion: undefined };
  }),
  {
    mistake: "numbers the windows of an owner from 1 again when it is created again",
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management, permitLanes } = inner;
      const first = new Map<string, number>();
      const change = ((command, record) => {
        if (command.kind === "deleteOwner") first.clear();
        return management.change(command, record);
      }) as typeof management.change;
      const [lane] = permitLanes as [(typeof permitLanes)[0]];
      return {
        ...inner,
        management: { ...management, change },
        permitLanes: [
          {
            async exchange(asks) {
              const results = await lane.exchange(
                asks.map((ask) => ({ ...ask, gen: ask.gen + (first.get(ask.subject) ?? 0) })),
              );
              return results.map((result, i) => {
                const subject = asks[i]?.subject ?? "";
                if (result.outcome !== "settled" || !subject.startsWith("o/")) return result;
                if (!first.has(subject)) first.set(subject, result.gen - 1);
                return { ...result, gen: result.gen - (first.get(subject) as number) };
              });
            },
          },
        ],
      };
    },
  },
  shows("shows every owner as never changed", (owner) => ({ ...owner, version: 1, updatedAtMs: owner.createdAtMs })),
  lists("lists owners oldest first", async (ask, query) => {
    const page = await ask(query);
    return { ...page, items: page.items.toReversed() };
  }),
  lists("pages owners by number", async (ask, { after = "0", limit, ...query }) => {
    const end = Number(after) + limit;
    const { items, cursor } = await ask({ ...query, limit: end });
    const page = { items: items.slice(Number(after)) };
    return cursor === undefined ? page : { ...page, cursor: `${end}` };
  }),
  lists("lists owners without their counters", async (ask, query) => {
    const page = await ask(query);
    return { ...page, items: page.items.map((owner) => ({ ...owner, counter: undefined })) };
  }),
  lists("lists owners that concern one of the APIs", async (ask, { apiIds: within, ...query }) => {
    const page = await ask(query);
    const isShown = ({ apiIds }: StoredOwner) => within === undefined || apiIds?.some((id) => within.includes(id));
    return { ...page, items: page.items.filter(isShown) };
  }),
  lists("filters a page of owners after it was cut", async (ask, { apiIds: within, ...query }) => {
    const page = await ask(query);
    const isShown = ({ apiIds }: StoredOwner) => within === undefined || apiIds?.every((id) => within.includes(id));
    return { ...page, items: page.items.filter(isShown) };
  }),
  lists("lists all owners if no API is asked for", (ask, query) =>
    ask(query.apiIds?.length === 0 ? { ...query, apiIds: undefined } : query),
  ),
  eventLists("shows events of owners to those who may see one of their APIs", async (list, { apiIds, ...query }) => {
    const page = await list({ ...query, limit: 1000 });
    const isShown = ({ apiId = "" }) => apiIds === undefined || apiIds.includes(apiId);
    return { items: page.items.filter(isShown) };
  }),
  ownersTold("tells of no owner", () => undefined),
  ownersTold("tells of a new owner as of one that was changed", () => false),
];
