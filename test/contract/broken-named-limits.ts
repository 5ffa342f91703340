import type { NewKey } from "../../src/domain/key.ts";
import type { NamedRateLimit } from "../../src/domain/limits.ts";
import { holderOfLimit } from "../../src/domain/subject.ts";
import type { Store } from "../../src/store/store.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import type { BrokenStore } from "./break-store.ts";

type Change = Store["management"]["change"];
type Exchange = Store["permitLanes"][number]["exchange"];

interface Broken {
  readonly change?: Change;
  readonly exchange?: Exchange;
}

function breaks(mistake: string, breakIt: (change: Change, exchange: Exchange, store: Store) => Broken): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const lane = inner.permitLanes[0] as Store["permitLanes"][number];
      const broken = breakIt(inner.management.change, lane.exchange, inner);
      return {
        ...inner,
        management: { ...inner.management, ...(broken.change && { change: broken.change }) },
        permitLanes: [broken.exchange ? { exchange: broken.exchange } : lane],
      };
    },
  };
}

/** Changes all lists of limits on their way. */
function lists(
  mistake: string,
  other: (given: readonly NamedRateLimit[], before: readonly NamedRateLimit[]) => readonly NamedRateLimit[],
): BrokenStore {
  return breaks(mistake, (change, _, { management }) => ({
    async change(command, record) {
      if (command.kind !== "updateKey" || !command.changes.rateLimits) return change(command, record);
      const before = await management.read({ kind: "key", id: command.id });
      const rateLimits = other(command.changes.rateLimits, before?.rateLimits ?? []);
      return change({ ...command, changes: { ...command.changes, rateLimits } } as typeof command, record);
    },
  }));
}

/** Stores that get limits with names wrong. */
export const brokenNamedLimits: readonly BrokenStore[] = [
  lists("merges limits with names", (given, before) => [
    ...before.filter(({ name }) => given.every((one) => one.name !== name)),
    ...given,
  ]),
  lists("keeps the rule of a limit whose name stays", (given, before) =>
    given.map((limit) => before.find(({ name }) => name === limit.name) ?? limit),
  ),
  breaks("counts all limits of a key in one window", (_, exchange) => ({
    exchange: async (asks) => {
      const first = new Map<string, string>();
      const subjectOf = (subject: string) => {
        const holder = holderOfLimit(subject) ?? subject;
        if (!first.has(holder)) first.set(holder, subject);
        return first.get(holder) as string;
      };
      return exchange(asks.map((ask) => ({ ...ask, subject: subjectOf(ask.subject).replace(/\/.*$/, "/a") })));
    },
  })),
  breaks("begins new windows with changed limits", (change, _, { management }) => ({
    async change(command, record) {
      const key = command.kind === "updateKey" && (await management.read({ kind: "key", id: command.id }));
      if (command.kind !== "updateKey" || !command.changes.rateLimits || !key) return change(command, record);
      const { counter: _, secrets: __, version: ___, updatedAtMs: ____, ...stored } = key;
      const { event, changes } = command;
      const remade = { ...stored, remaining: undefined, refill: undefined, secretDigest: `remade ${key.id}` } as NewKey;
      await change({ kind: "deleteKey", id: key.id, event });
      await change({
        kind: "createKey",
        created: {
          ...remade,
          rateLimits: changes.rateLimits ?? undefined,
          rateLimit: changes.rateLimit ?? remade.rateLimit,
        },
        event,
      });
      return change({ ...command, ifVersion: undefined }, record);
    },
  })),
  breaks("gives a window to no limit with a name of an imported key", (change) => ({
    change(command, record) {
      if (command.kind !== "importKeys") return change(command, record);
      const keys = command.keys.map((key) => ({
        ...key,
        rateLimits: key.rateLimits?.map(({ name, rule }) => ({ name, rule: { ...rule, mode: "local" } as const })),
      }));
      return change({ ...command, keys } as typeof command, record);
    },
  })),
  breaks("leaves windows of limits that a deleted key had", (change, exchange) => {
    const deleted = new Set<string>();
    return {
      change(command, record) {
        if (command.kind === "deleteKey") deleted.add(command.id);
        return change(command, record);
      },
      async exchange(asks) {
        const results = await exchange(asks);
        return results.map((result, i) => {
          const isLeft = deleted.has(holderOfLimit(asks[i]?.subject ?? "") ?? "");
          return isLeft && result.outcome === "settled" ? { ...result, granted: 0 } : result;
        });
      },
    };
  }),
  breaks("deletes the window with a subject that it takes for an id", (change, exchange) => {
    const deleted = new Set<string>();
    return {
      change(command, record) {
        if (command.kind === "deleteKey" && command.id.includes("/")) deleted.add(command.id);
        return change(command, record);
      },
      async exchange(asks) {
        const results = await exchange(asks);
        return results.map((result, i) => (deleted.has(asks[i]?.subject ?? "") ? { outcome: "missing" } : result));
      },
    };
  }),
  breaks("deletes windows of keys whose ids begin alike", (change, exchange) => {
    const deleted: string[] = [];
    return {
      change(command, record) {
        if (command.kind === "deleteKey") deleted.push(command.id);
        return change(command, record);
      },
      async exchange(asks) {
        const results = await exchange(asks);
        return results.map((result, i) =>
          deleted.some((id) => asks[i]?.subject.startsWith(id)) ? { outcome: "missing" } : result,
        );
      },
    };
  }),
  breaks("changes windows of a key that has another version", (change, exchange) => {
    const changed = new Map<string, number>();
    return {
      async change(command, record) {
        const outcome = await change(command, record);
        if (command.kind === "updateKey" && outcome.outcome === "conflict" && command.changes.rateLimits)
          changed.set(command.id, command.changes.rateLimits[0]?.rule.limit ?? 0);
        return outcome;
      },
      async exchange(asks) {
        const results = await exchange(asks);
        return results.map((result, i) => {
          const limit = changed.get(holderOfLimit(asks[i]?.subject ?? "") ?? "");
          return limit === undefined || result.outcome !== "settled" ? result : { ...result, limit };
        });
      },
    };
  }),
  breaks("gives a key with a new secret new windows", (change, exchange) => {
    const rerolled = new Set<string>();
    return {
      change(command, record) {
        if (command.kind === "rerollKey") rerolled.add(command.id);
        return change(command, record);
      },
      async exchange(asks) {
        const results = await exchange(asks);
        return results.map((result, i) => {
          const isNew = rerolled.has(holderOfLimit(asks[i]?.subject ?? "") ?? "");
          return isNew && result.outcome === "settled" ? { ...result, gen: result.gen + 1 } : result;
        });
      },
    };
  }),
];
