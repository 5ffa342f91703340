import type { ImportedKey, ImportKeys } from "../../src/store/commands.ts";
import type { Management, Outcome } from "../../src/store/management.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, feed } from "./break-store.ts";

type Change = Management["change"];
type Import = (command: ImportKeys, record?: Parameters<Change>[1]) => Promise<Outcome<"importKeys">>;

/** Stores that get `importKeys` wrong. */
export const brokenImports: readonly BrokenStore[] = [
  each("loses counters of imported keys", (key) => ({ ...key, remaining: undefined })),
  each("loses strict limits of imported keys", (key) => ({ ...key, rateLimit: undefined })),
  each("loses limits with names of imported keys", (key) => ({ ...key, rateLimits: undefined })),
  each("loses the bound on costs of imported keys", (key) => ({ ...key, costMax: undefined })),
  each("loses the environment of imported keys", (key) => ({ ...key, environment: undefined })),
  each("loses permissions of imported keys", (key) => ({ ...key, permissions: undefined })),
  each("loses addresses of imported keys", (key) => ({ ...key, ipAllow: undefined })),
  each("gives imported keys a start", (key) => ({ ...key, start: key.start || "?" })),
  each("loses metadata of imported keys", (key) => ({ ...key, meta: {} })),
  imports("stores nothing if one digest exists", (inner) => async (command, record) => {
    const exist = await Promise.all(command.keys.map(({ secretDigest }) => inner.keys.findByDigest(secretDigest)));
    if (exist.every((key) => key === undefined)) return inner.management.change(command, record);
    return inner.management.change({ ...command, keys: [] }, record);
  }),
  imports("replaces keys whose digest exists", (inner) => async (command, record) => {
    for (const { secretDigest } of command.keys) {
      const existing = await inner.keys.findByDigest(secretDigest);
      const keyId = existing?.id ?? "";
      await inner.management.change({ kind: "deleteKey", id: keyId, event: command.event });
    }
    return inner.management.change(command, record);
  }),
  imports("takes over keys of other APIs", (inner) => async (command, record) => {
    for (const { secretDigest } of command.keys) {
      const existing = await inner.keys.findByDigest(secretDigest);
      if (existing === undefined || existing.apiId === command.apiId) continue;
      await inner.management.change({ kind: "deleteKey", id: existing.id, event: command.event });
    }
    return inner.management.change(command, record);
  }),
  imports("tells of a digest of another API by a refusal", (inner) => async (command, record) => {
    const exist = await Promise.all(command.keys.map(({ secretDigest }) => inner.keys.findByDigest(secretDigest)));
    const isForeign = exist.some((key) => key !== undefined && key.apiId !== command.apiId);
    return isForeign ? { outcome: "missing" } : inner.management.change(command, record);
  }),
  imports("says that keys were imported into an API that takes none", (inner) => async (command, record) => {
    const outcome = await inner.management.change(command, record);
    if (outcome.outcome !== "conflict") return outcome;
    return { outcome: "done", changed: [], answer: { keyIds: command.keys.map(({ id }) => id) } };
  }),
  imports("creates an API that must exist by an import", (inner) => (command, record) => {
    return inner.management.change({ ...command, apiMustExist: false }, record);
  }),
  imports("creates no API by an import", (inner) => (command, record) => {
    return inner.management.change({ ...command, apiMustExist: true }, record);
  }),
  imports("looks for digests before it stores them", (inner) => async (command) => {
    const missing: ImportedKey[] = [];
    for (const key of command.keys)
      if ((await inner.keys.findByDigest(key.secretDigest)) === undefined) missing.push(key);
    await nextTurn();
    for (const key of missing) await createKey(inner.management, key);
    return { outcome: "done", changed: [], answer: { keyIds: missing.map(({ id }) => id) } };
  }),
  imports("answers all ids", (inner) => async (command, record) => {
    const outcome = await inner.management.change(command, record);
    if (outcome.outcome !== "done") return outcome;
    return { ...outcome, answer: { keyIds: command.keys.map(({ id }) => id) } };
  }),
  imports("ignores records of imports", (inner) => (command) => inner.management.change(command)),
  imports("gives all imported keys one event", (inner) => (command, record) => {
    const [first] = command.keys;
    const keys = command.keys.map((key) => ({ ...key, eventId: first?.eventId ?? "" }));
    return inner.management.change({ ...command, keys }, record);
  }),
  feed("never says that keys were imported", (read) => async (since) => ({
    ...(await read(since)),
    hasImportedKeys: false,
  })),
  feed("always says that keys were imported", (read) => async (since) => ({
    ...(await read(since)),
    hasImportedKeys: true,
  })),
];

function each(mistake: string, change: (key: ImportedKey) => ImportedKey): BrokenStore {
  return imports(mistake, ({ management }) => (command, record) => {
    return management.change({ ...command, keys: command.keys.map(change) }, record);
  });
}

function imports(mistake: string, breakIt: (inner: ReturnType<typeof createMemoryStore>) => Import): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const importAll = breakIt(inner);
      const change = async (...[command, record]: Parameters<Change>) =>
        command.kind === "importKeys" ? importAll(command, record) : inner.management.change(command, record);
      return { ...inner, management: { ...inner.management, change: change as Change } };
    },
  };
}
