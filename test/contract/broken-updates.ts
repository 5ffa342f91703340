import { newCounter, refilled } from "../../src/domain/usage.ts";
import type { Outcome } from "../../src/store/management.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { updatedCounter } from "../support/memory-rules.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, keys, updateRule } from "./break-store.ts";

/** Stores that get `updateRemaining` wrong. */
export const brokenUpdates: readonly BrokenStore[] = [
  updateRule("applies a refill that is due after the change", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, 0);
    return typeof updated === "object" ? refilled(updated, nowMs) : updated;
  }),
  updateRule("forgets a refill that is due", (counter, command) => updatedCounter(counter, command, 0)),
  updateRule("loses a refill that is due", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, 0);
    if (counter === undefined || typeof updated !== "object") return updated;
    return { ...updated, refill: refilled(counter, nowMs).refill };
  }),
  updateRule("adds a refill that is due and leaves it due", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return typeof updated === "object" ? { ...updated, refill: counter?.refill } : updated;
  }),
  updateRule("forgets the refill rule", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return typeof updated === "object" ? { ...updated, refill: undefined } : updated;
  }),
  updateRule("clamps at 0 instead of refusing", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return updated === "belowZero" && counter ? { ...refilled(counter, nowMs), remaining: 0 } : updated;
  }),
  updateRule("clamps at the bound instead of refusing", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return updated === "aboveMax" && counter ? { ...refilled(counter, nowMs), remaining: 2 ** 31 - 1 } : updated;
  }),
  updateRule("refuses to take the last use", (counter, command, nowMs) => {
    const updated = updatedCounter(counter, command, nowMs);
    return typeof updated === "object" && updated.remaining === 0 ? "belowZero" : updated;
  }),
  updateRule("makes a counter for an increment", (counter, command, nowMs) =>
    updatedCounter(counter ?? newCounter(0, undefined, nowMs), command, nowMs),
  ),
  updateRule("does nothing to a counter that is missing", (counter, command, nowMs) =>
    counter === undefined && command.op === "set" ? undefined : updatedCounter(counter, command, nowMs),
  ),
  updateRule("sets a counter to 0 instead of taking it away", (counter, command, nowMs) =>
    command.value === undefined ? newCounter(0, undefined, nowMs) : updatedCounter(counter, command, nowMs),
  ),
  keys("counts the version of a refused update", (inner) => {
    const refusals = new Map<string, number>();
    return {
      async updateRemaining(command) {
        const outcome = await inner.updateRemaining(command);
        const counted = (refusals.get(command.id) ?? 0) + Number(outcome.outcome === "conflict");
        refusals.set(command.id, counted);
        if (outcome.outcome !== "done" || outcome.answer === undefined) return outcome;
        return { ...outcome, answer: { ...outcome.answer, version: outcome.answer.version + counted } };
      },
    };
  }),
  keys("looks up whether there is a counter as it was at first", (inner) => {
    const counted = new Set<string>();
    return {
      create(key, record) {
        if (key.remaining !== undefined) counted.add(key.secretDigest);
        return inner.create(key, record);
      },
      async findByDigest(digest) {
        const key = await inner.findByDigest(digest);
        if (key === undefined) return undefined;
        return { ...key, counter: counted.has(digest) ? (key.counter ?? { remaining: 0 }) : undefined };
      },
    };
  }),
  keys("answers the balance before the update", (inner, store) => ({
    async updateRemaining(command) {
      const before = await balanceOf(store, command.id);
      const outcome = await inner.updateRemaining(command);
      if (outcome.outcome !== "done" || outcome.answer === undefined) return outcome;
      return { ...outcome, answer: { ...outcome.answer, remaining: before } };
    },
  })),
  keys("says of every update that it was made", (inner) => ({
    async updateRemaining(command): Promise<Outcome<"updateRemaining">> {
      const outcome = await inner.updateRemaining(command);
      if (outcome.outcome !== "missing") return outcome;
      return { outcome: "done", changed: [], answer: { remaining: command.value, version: 1 } };
    },
  })),
  keys("reads a counter and sets it later", (inner, store) => ({
    async updateRemaining(command) {
      const before = await balanceOf(store, command.id);
      await nextTurn();
      if (before === undefined || command.value === undefined || command.op === "set")
        return inner.updateRemaining(command);
      const value = command.op === "increment" ? before + command.value : before - command.value;
      const isAllowed = value >= 0 && value < 2 ** 31;
      return inner.updateRemaining(isAllowed ? { ...command, op: "set", value } : command);
    },
  })),
  {
    mistake: "tells no reader of an update",
    open(clock) {
      const inner = createMemoryStore(clock);
      const updated = new Set<string>();
      return {
        ...inner,
        management: {
          ...inner.management,
          change(command, record) {
            if (command.kind === "updateRemaining") updated.add(command.id);
            return inner.management.change(command, record);
          },
        },
        changes: {
          async read(since) {
            const news = await inner.changes.read(since);
            if (news.changed === "everything") return news;
            return { ...news, changed: news.changed.filter((it) => it.kind !== "key" || !updated.has(it.keyId)) };
          },
        },
      };
    },
  },
  keys("tells readers of a refused update", (inner) => ({
    async updateRemaining(command) {
      const outcome = await inner.updateRemaining(command);
      if (outcome.outcome === "conflict") await inner.setRateLimit(command.id, undefined);
      return outcome;
    },
  })),
];

async function balanceOf(store: Parameters<Parameters<typeof keys>[1]>[1], keyId: string): Promise<number | undefined> {
  const [result] = (await store.usageLanes[0]?.settle([{ subject: keyId, cost: 1, count: 0 }])) ?? [];
  return result?.outcome === "settled" ? result.remaining : undefined;
}
