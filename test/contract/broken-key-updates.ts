import { refilled } from "../../src/domain/usage.ts";
import type { Command, UpdateKey } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { withRefill } from "../support/memory-rules.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import type { BrokenStore } from "./break-store.ts";

type Change = Store["management"]["change"];

/** Changes commands on their way, or outcomes on their way back. */
function changes(mistake: string, breakIt: (inner: Change, store: Store) => Change): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, management: { ...inner.management, change: breakIt(inner.management.change, inner) } };
    },
  };
}

function updates(
  mistake: string,
  breakIt: (command: UpdateKey, change: Change, store: Store) => Promise<Outcome<"updateKey">>,
): BrokenStore {
  return changes(mistake, (inner, store) => async (command, record) => {
    if (command.kind !== "updateKey" || record !== undefined) return inner(command, record);
    return (await breakIt(command, inner, store)) as Outcome<(typeof command)["kind"]>;
  });
}

/** Changes refill rules by another rule. */
function refills(mistake: string, rule: typeof withRefill): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, { refill: rule }) };
}

function forgets(command: Command, field: string): boolean {
  return command.kind === "updateKey" && (command.changes as Record<string, unknown>)[field] === null;
}

/** Stores that get `updateKey` wrong. */
export const brokenKeyUpdates: readonly BrokenStore[] = [
  ...[
    "ownerId",
    "name",
    "expiresAtMs",
    "rateLimit",
    "rateLimits",
    "costMax",
    "permissions",
    "ipAllow",
    "environment",
  ].map((field) =>
    updates(`does not remove ${field}`, (command, change) =>
      change(forgets(command, field) ? { ...command, changes: { ...command.changes, [field]: undefined } } : command),
    ),
  ),
  updates("merges metadata", async (command, change, { management }) => {
    const before = await management.read({ kind: "key", id: command.id });
    const { meta } = command.changes;
    return change(meta ? { ...command, changes: { ...command.changes, meta: { ...before?.meta, ...meta } } } : command);
  }),
  updates("enables a key with every update", (command, change) =>
    change({ ...command, changes: { enabled: true, ...command.changes } }),
  ),
  updates("ignores the version", (command, change) => change({ ...command, ifVersion: undefined })),
  updates("compares the version and changes the key later", async (command, change, { management }) => {
    const before = await management.read({ kind: "key", id: command.id });
    await nextTurn();
    if (before !== undefined && (command.ifVersion ?? before.version) !== before.version)
      return { outcome: "conflict", reason: "version" };
    return change({ ...command, ifVersion: undefined });
  }),
  updates("takes a key that is not there for one of another version", async (command, change) => {
    const outcome = await change(command);
    const isMissing = outcome.outcome === "missing" && command.ifVersion !== undefined;
    return isMissing ? { outcome: "conflict", reason: "version" } : outcome;
  }),
  updates("answers the key as it was", async (command, change, { management }) => {
    const before = await management.read({ kind: "key", id: command.id });
    const outcome = await change(command);
    return outcome.outcome === "done" && before !== undefined ? { ...outcome, answer: before } : outcome;
  }),
  updates("tells readers of an update that was not made", async (command, change) => {
    const outcome = await change(command);
    if (outcome.outcome === "conflict") await change({ ...command, ifVersion: undefined, changes: {} });
    return outcome;
  }),
  updates("takes a refill rule for a key without a counter", (command, change) =>
    change({ ...command, changes: { ...command.changes, refill: command.changes.refill ?? undefined } }).then(
      (outcome) =>
        outcome.outcome === "conflict" && outcome.reason === "noCounter"
          ? change({ ...command, changes: { ...command.changes, refill: undefined } })
          : outcome,
    ),
  ),
  refills("keeps the boundary of the rule before", (counter, rule, nowMs) => {
    const changed = withRefill(counter, rule, nowMs);
    const through = counter.refill?.refilledThroughMs ?? 0;
    return { ...changed, refill: changed.refill && { ...changed.refill, refilledThroughMs: through } };
  }),
  refills("refills by a new rule at once", (counter, rule, nowMs) => {
    const changed = withRefill(counter, rule, nowMs);
    return refilled({ ...changed, refill: changed.refill && { ...changed.refill, refilledThroughMs: 0 } }, nowMs);
  }),
  refills("loses the refills that were due", (counter, rule, nowMs) =>
    rule === undefined ? counter : { ...withRefill(counter, rule, nowMs), remaining: counter.remaining },
  ),
  refills("keeps a refill rule that was removed", (counter, rule, nowMs) =>
    withRefill(counter, rule ?? undefined, nowMs),
  ),
  changes(
    "keeps idempotency records of creates only",
    (inner) => (command, record) => inner(command, command.kind === "createKey" ? record : undefined),
  ),
  changes("keeps the record of a change that is not made", (inner) => {
    const kept = new Map<string, Outcome<Command["kind"]>>();
    return async (command, record) => {
      const before = record && kept.get(record.lookup);
      if (before !== undefined && record !== undefined) return { outcome: "repeated", record };
      const outcome = await inner(command, record);
      if (record !== undefined) kept.set(record.lookup, outcome);
      return outcome;
    };
  }),
  changes("makes a change before it looks for its record", (inner, { management }) => async (command, record) => {
    if (command.kind === "createKey" || record === undefined) return inner(command, record);
    const kept = await management.read({ kind: "keptAnswer", lookup: record.lookup, nowMs: record.createdAtMs });
    const outcome = await inner(command);
    if (kept !== undefined) return { outcome: "repeated", record: kept };
    return outcome.outcome === "done" ? inner(command, record) : outcome;
  }),
];
