import type { EndOwnerKeys } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { deleteKey, listPages, testEvent } from "../support/manage.ts";
import { type AnyManagement, type BrokenStore, eventLists, feed, manages } from "./break-store.ts";

type Ended = Outcome<"endOwnerKeys">;

/** Ends the keys of an owner in another way. `inner` does it as it should be done. */
function ends(
  mistake: string,
  breakIt: (command: EndOwnerKeys, inner: (command: EndOwnerKeys) => Promise<Ended>, store: Store) => Promise<Ended>,
): BrokenStore {
  return manages(mistake, (inner: AnyManagement, store) => ({
    change: (command, record) =>
      command.kind === "endOwnerKeys"
        ? breakIt(command, (changed) => inner.change(changed) as Promise<Ended>, store)
        : inner.change(command, record),
  }));
}

/** Ends the keys that another command asks for. */
function takes(mistake: string, change: (command: EndOwnerKeys) => Partial<EndOwnerKeys>): BrokenStore {
  return ends(mistake, (command, inner) => inner({ ...command, ...change(command) }));
}

/** Answers something else. */
function answers(mistake: string, change: (done: Extract<Ended, { outcome: "done" }>) => Ended): BrokenStore {
  return ends(mistake, async (command, inner) => {
    const outcome = await inner(command);
    return outcome.outcome === "done" ? change(outcome) : outcome;
  });
}

async function keysOf({ management }: Store, query: Parameters<typeof listPages>[1]) {
  return (await listPages(management, query)).flatMap(({ items }) => items);
}

/** Stores that get the end of an owner's keys wrong. */
export const brokenOwnerDeletions: readonly BrokenStore[] = [
  takes("ends keys of an owner of every API", () => ({ apiId: undefined })),
  takes("ends all keys of an owner in one piece", () => ({ limit: 500 })),
  takes("ends the first keys of an owner again and again", () => ({ after: undefined })),
  takes("leaves out the key behind the cursor", ({ after }) => ({ after: after && `${after.slice(0, -1)}c` })),
  takes("deletes keys of an owner that are to be disabled", () => ({ how: "delete" })),
  takes("disables keys of an owner that are to be deleted", () => ({ how: "disable" })),
  takes("ends keys of an owner of any version", () => ({ ifVersion: undefined })),
  ends("ends keys of an owner that was made since", async (command, inner, { management }) => {
    const owner = await management.read({ kind: "owner", id: command.id });
    return inner({ ...command, madeAtMs: owner?.createdAtMs ?? command.madeAtMs });
  }),
  ends("ends keys of other owners too", async (command, inner, store) => {
    const outcome = await inner(command);
    for (const key of await keysOf(store, { apiId: "a" }))
      if (key.ownerId?.startsWith(command.id) && key.ownerId !== command.id) await deleteKey(store.management, key.id);
    return outcome;
  }),
  ends("disables keys of an owner again that are disabled already", async (command, inner, store) => {
    const disabled = await keysOf(store, { ownerId: command.id, enabled: false });
    for (const { id } of command.how === "disable" ? disabled : []) {
      const changes = { enabled: false };
      await store.management.change({ kind: "updateKey", id, changes, event: testEvent() });
    }
    return inner(command);
  }),
  ends("passes over any number of keys of an owner that are disabled", async (command, inner, store) => {
    const { id: ownerId, apiId, after = "", how } = command;
    const newestFirst = await keysOf(store, { ownerId, ...(apiId && { apiId }) });
    const behind = newestFirst.filter(({ id }) => id > after).reverse();
    const last = behind.filter(({ enabled }) => enabled || how === "delete")[command.limit - 1];
    return inner({ ...command, limit: last ? behind.indexOf(last) + 1 : behind.length + 1 });
  }),
  ends("counts the end of its keys as a change of an owner", async (command, inner, { management }) => {
    const { id, event } = command;
    const outcome = await inner(command);
    if (outcome.outcome === "done") await management.change({ kind: "updateOwner", id, changes: {}, event });
    return outcome;
  }),
  ends("looks for the keys of an owner before it ends them", async (command, inner, store) => {
    const { id, event, how, limit } = command;
    if (limit < 500) return inner(command);
    const changed = (await keysOf(store, { ownerId: id })).map(({ id: keyId }) => ({ keyId, digests: undefined }));
    await nextTurn();
    for (const { keyId } of changed) {
      const disable = { kind: "updateKey", id: keyId, changes: { enabled: false }, event } as const;
      await store.management.change(how === "delete" ? { kind: "deleteKey", id: keyId, event } : disable);
    }
    return { outcome: "done", changed, answer: { cursor: undefined } };
  }),
  answers("says that no more keys of an owner are left", (done) => ({ ...done, answer: { cursor: undefined } })),
  answers("answers the last key of an owner that has changed as the cursor", (done) => ({
    ...done,
    answer: { cursor: done.answer?.cursor && done.changed.at(-1)?.keyId },
  })),
  answers("answers no digests of the keys of an owner", (done) => ({
    ...done,
    changed: done.changed.map(({ keyId }) => ({ keyId, digests: [] })),
  })),
  feed("does not report the keys of an owner that have ended", (read) => async (since) => {
    const news = await read(since);
    if (news.changed === "everything") return news;
    return { ...news, changed: news.changed.filter(({ kind }) => kind !== "key") };
  }),
  eventLists("leaves no events of the keys of an owner that have ended", async (list, query) => {
    const page = await list(query);
    const isLeft = (event: (typeof page.items)[0]) => event.method !== "owners.deleteOwner" || event.fields.length > 0;
    return { ...page, items: page.items.filter(isLeft) };
  }),
  eventLists("shows no fields of keys that were disabled with their owner", async (list, query) => {
    const page = await list(query);
    return { ...page, items: page.items.map((event) => ({ ...event, fields: [] })) };
  }),
];
