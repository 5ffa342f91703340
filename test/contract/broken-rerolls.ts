import type { Command, IdempotencyRecord } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { rerolledSecrets } from "../support/memory-rules.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, feed, keys, rerollRule, shows, tidies } from "./break-store.ts";

/** Stores that get `rerollKey` wrong. */
export const brokenRerolls: readonly BrokenStore[] = [
  rerollRule("ends the secret before at once", (before, command) =>
    rerolledSecrets(before, { ...command, overlapMs: 0 }),
  ),
  rerollRule("lets the secret before live on for ever", (before, command) => [
    ...rerolledSecrets(before, { ...command, overlapMs: 0 }),
    ...before.slice(0, 1),
  ]),
  rerollRule("keeps a secret for an overlap of 0", (before, command) =>
    rerolledSecrets(before, { ...command, overlapMs: command.overlapMs || 1000 }),
  ),
  rerollRule("ends the secret before a millisecond early", (before, command) =>
    rerolledSecrets(before, { ...command, overlapMs: Math.max(0, command.overlapMs - 1) }),
  ),
  rerollRule("keeps every secret that was replaced", (before, command) => {
    const [made, ending] = rerolledSecrets(before, command);
    return [made, ending, ...before.slice(1)].filter((it) => it !== undefined);
  }),
  rerollRule("keeps the oldest secret instead of the one before", (before, command) => {
    const [made, ending] = rerolledSecrets(before, command);
    return [made, before[1] ?? ending].filter((it) => it !== undefined);
  }),
  rerollRule("keeps the oldest secret where there is no overlap", (before, command) =>
    command.overlapMs === 0
      ? [...rerolledSecrets(before, command), ...before.slice(1)]
      : rerolledSecrets(before, command),
  ),
  rerollRule("forgets when a secret was made", (before, command) =>
    rerolledSecrets(before, command).map((secret) => ({ ...secret, createdAtMs: 0 })),
  ),
  rerolls("gives back the uses of the counter", async (inner, command, record) => {
    const outcome = await inner.management.change(command, record);
    if (outcome.outcome === "done" && command.kind === "rerollKey") {
      const [counter] = (await inner.usageLanes[0]?.settle([{ subject: command.id, cost: 1, count: 0 }])) ?? [];
      const update = { kind: "updateRemaining", id: command.id, op: "set", value: 10 } as const;
      if (counter?.outcome === "settled") await inner.management.change({ ...update, event: command.event });
    }
    return outcome;
  }),
  rerolls("tells its caller of the secret before only", async (inner, command, record) => {
    const outcome = await inner.management.change(command, record);
    if (outcome.outcome !== "done") return outcome;
    return {
      ...outcome,
      changed: outcome.changed.map((it) => ({ ...it, digests: it.digests?.slice(0, 1) })),
    };
  }),
  rerolls("says of every reroll that it was made", async (inner, command, record) => {
    const outcome = await inner.management.change(command, record);
    return command.kind === "rerollKey" && outcome.outcome === "missing" ? { outcome: "done", changed: [] } : outcome;
  }),
  rerolls("rerolls again when the request is repeated", (inner, command, record) =>
    inner.management.change(command, command.kind === "rerollKey" ? undefined : record),
  ),
  rerolls("reads the secret before and replaces it later", async (inner, command, record) => {
    if (command.kind !== "rerollKey") return inner.management.change(command, record);
    const before = await inner.management.read({ kind: "key", id: command.id });
    await nextTurn();
    const outcome = await inner.management.change(command, record);
    if (outcome.outcome !== "done" || before === undefined) return outcome;
    const changed = await inner.management.read({ kind: "key", id: command.id });
    // Another one came in between: the secret of that one is lost, and was never told.
    if (changed !== undefined && changed.version > before.version + 1) await inner.management.change(command);
    return outcome;
  }),
  feed("leaves the second digest out of the feed", (read) => async (since) => {
    const news = await read(since);
    if (news.changed === "everything") return news;
    const first = news.changed.map((it) => (it.kind === "key" ? { ...it, digests: it.digests.slice(0, 1) } : it));
    return { ...news, changed: first };
  }),
  shows("shows one secret", (key) => ({ ...key, secrets: key.secrets.slice(0, 1) })),
  {
    mistake: "reads a key by a secret that has ended",
    open(clock) {
      const inner = createMemoryStore(clock);
      const read: Store["management"]["read"] = (query) =>
        inner.management.read(query.kind === "keyOfSecret" ? { ...query, nowMs: 0 } : query);
      return { ...inner, management: { ...inner.management, read } };
    },
  },
  keys("looks ending secrets up without their end", (inner) => ({
    async findByDigest(digest) {
      const key = await inner.findByDigest(digest);
      return key && { ...key, secretExpiresAtMs: undefined };
    },
  })),
  tidies("removes secrets that end later", (inner) => (nowMs) => inner(nowMs + 1)),
];

function rerolls(
  mistake: string,
  change: (inner: Store, command: Command, record?: IdempotencyRecord) => Promise<Outcome<Command["kind"]>>,
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return {
        ...inner,
        management: {
          ...inner.management,
          change: async (command, record) =>
            (await change(inner, command, record)) as Outcome<(typeof command)["kind"]>,
        },
      };
    },
  };
}
