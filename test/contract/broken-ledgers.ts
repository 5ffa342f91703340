import type { Key } from "../../src/domain/key.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { KeyLookup } from "../../src/store/key-lookup.ts";
import type { Management } from "../../src/store/management.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, onClock, rootKeyChanges, rootKeyPages, rootKeys, shared, usage } from "./break-store.ts";

export const brokenRootKeyStores: readonly BrokenStore[] = [
  rootKeys("says of every root key that it is the first", (inner) => ({
    addFirst: async (...first) => (await inner.addFirst(...first)) || true,
  })),
  rootKeys("keeps every root key", () => {
    const kept: string[] = [];
    return {
      addFirst: async (digest) => kept.push(digest) === 1,
      findByDigest: async (digest) => (kept.includes(digest) ? unlimitedRootKey("root_generated") : undefined),
    };
  }),
  rootKeys("looks for a root key before it keeps one", () => {
    let kept: string | undefined;
    return {
      findByDigest: async (digest) => (kept === digest ? unlimitedRootKey("root_generated") : undefined),
      async addFirst(digest) {
        const none = kept === undefined;
        await Promise.resolve();
        if (none) kept = digest;
        return none;
      },
    };
  }),
  rootKeys("says that there is a root key when there is none", () => ({ presence: async () => "some" })),
  rootKeys("takes a created root key for the generated one", (inner) => ({
    async presence(nowMs) {
      const presence = await inner.presence(nowMs);
      return presence === "some" ? "generated" : presence;
    },
  })),
  rootKeys("says that there is no root key when there is one", () => ({ presence: async () => "none" })),
  rootKeys("forgets that the generated root key was retired", () => ({ retireGenerated: async () => {} })),
  rootKeys("retires a generated root key that is also configured", (inner) => ({
    retireGenerated: (nowMs) => inner.retireGenerated(nowMs, []),
  })),
  rootKeys("replaces a generated root key that is valid", (inner) => ({
    async addFirst(digest, start, nowMs) {
      await inner.retireGenerated(nowMs, []);
      return inner.addFirst(digest, start, nowMs);
    },
  })),
  rootKeys("finds a root key by any digest", (inner) => ({
    findByDigest: async () => ((await inner.presence(0)) !== "none" ? unlimitedRootKey("root_generated") : undefined),
  })),
  rootKeyChanges(
    "keeps a root key that was revoked",
    (change) => async (command) =>
      command.kind === "revokeRootKey" ? { outcome: "done", changed: [] } : change(command),
  ),
  rootKeyChanges(
    "does not look at the version of a root key",
    (change) => (command) => change("ifVersion" in command ? { ...command, ifVersion: undefined } : command),
  ),
  rootKeyChanges(
    "removes what a change of a root key does not name",
    (change) => (command) =>
      change(
        command.kind === "updateRootKey"
          ? { ...command, changes: { apiIds: null, name: null, ...command.changes } }
          : command,
      ),
  ),
  rootKeyChanges("sets a name that is to be removed", (change) => (command) => {
    if (command.kind !== "updateRootKey" || command.changes.name !== null) return change(command);
    return change({ ...command, changes: { ...command.changes, name: "null" } });
  }),
  rootKeyChanges(
    "forgets the APIs of a new root key",
    (change) => (command) =>
      change(
        command.kind === "createRootKey" ? { ...command, created: { ...command.created, apiIds: undefined } } : command,
      ),
  ),
  rootKeyChanges(
    "notes no time of a change of a root key",
    (change) => (command) => change({ ...command, event: { ...command.event, atMs: 1 } }),
  ),
  rootKeyChanges(
    "changes a root key of another id",
    (change) => (command) => change(command.kind === "createRootKey" ? command : { ...command, id: "root_1" }),
  ),
  rootKeyPages("lists root keys oldest first", ({ items, ...page }) => ({
    ...page,
    items: items.toReversed(),
  })),
  rootKeyPages("lists one page of root keys only", ({ items }) => ({ items })),
  rootKeyPages("lists root keys without their names", ({ items, ...page }) => ({
    ...page,
    items: items.map((rootKey) => ({ ...rootKey, name: undefined })),
  })),
  rootKeys("limits the generated root key", (inner) => ({
    async findByDigest(digest) {
      const verdict = await inner.findByDigest(digest);
      return verdict && { ...verdict, apiIds: [] };
    },
  })),
  {
    mistake: "keeps root keys among the issued keys",
    open(clock) {
      const inner = createMemoryStore(clock);
      const findByDigest: KeyLookup["findByDigest"] = async (digest) =>
        (await inner.rootKeys.findByDigest(digest)) ? ({ id: "root" } as Key) : inner.keys.findByDigest(digest);
      return { ...inner, keys: { ...inner.keys, findByDigest } };
    },
  },
];

export const brokenLedgers: readonly BrokenStore[] = [
  {
    mistake: "begins a counter by its creator's clock",
    open(clock) {
      let creating: number | undefined;
      const inner = createMemoryStore({
        nowMs: () => creating ?? clock.nowMs(),
        monotonicMs: () => 0,
        lateMs: () => 0,
      });
      const change: Management["change"] = async (command, record) => {
        if (command.kind === "createKey") creating = command.created.createdAtMs;
        const outcome = inner.management.change(command, record);
        creating = undefined;
        return outcome;
      };
      return { ...inner, management: { ...inner.management, change } };
    },
  },
  // Settling
  usage("reads a counter and writes it back later", (inner) => {
    const underWay = new Map<string, Promise<readonly ChargeResult[]>>();
    return (charges) => shared(underWay, JSON.stringify(charges), () => inner(charges));
  }),
  usage("grants all uses or none", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.map((result, i) =>
      result.outcome === "settled" && result.granted < (charges[i] as Charge).count
        ? { ...result, granted: 0 }
        : result,
    );
  }),
  usage(
    "grants one use at a time",
    (inner) => (charges) => inner(charges.map(({ subject: keyId }) => ({ subject: keyId, cost: 1, count: 1 }))),
  ),
  usage("answers the balance before the use", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.map((result) =>
      result.outcome === "settled" ? { ...result, remaining: result.remaining + result.granted } : result,
    );
  }),
  usage("grants one use too many", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.map((result) =>
      result.outcome === "settled" && result.granted === 0 ? { ...result, granted: 1 } : result,
    );
  }),
  usage("drops missing keys from its answer", (inner) => async (charges) => {
    return (await inner(charges)).filter(({ outcome }) => outcome !== "missing");
  }),
  usage("fails the whole call for one missing key", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.some(({ outcome }) => outcome === "missing") ? charges.map(() => ({ outcome: "missing" })) : results;
  }),
  usage(
    "answers in the order of the keys",
    (inner) => (charges) => inner(charges.toSorted((a, b) => (a.subject < b.subject ? -1 : 1))),
  ),
  usage("settles at most 100 keys a call", (inner) => (charges) => inner(charges.slice(0, 100))),
  usage("cannot settle nothing", (inner) => async (charges) => {
    if (charges.length === 0) throw new Error("a syntax error at the closing bracket");
    return inner(charges);
  }),
  usage("counts in 24 bits", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.map((result) =>
      result.outcome === "settled" ? { ...result, remaining: result.remaining & 0xffffff } : result,
    );
  }),

  // Refills by the wrong clock
  onClock("refills by the moment it was opened", (clock) => {
    const openedMs = clock.nowMs();
    return () => openedMs;
  }),
  onClock("refills a millisecond late", (clock) => () => clock.nowMs() - 1),
  onClock("refills a millisecond early", (clock) => () => clock.nowMs() + 1),
  usage("does not say that a refill came too early", (inner) => async (charges) => {
    const results = await inner(charges);
    return results.map((result) => {
      if (result.outcome !== "settled") return result;
      const { refilledAheadMs: _, ...told } = result;
      return told;
    });
  }),
  onClock("refills again after the clock went back", (clock) => {
    let lastMs = clock.nowMs();
    let stepsBack = 0;
    return () => {
      if (clock.nowMs() < lastMs) stepsBack++;
      lastMs = clock.nowMs();
      return lastMs + stepsBack * 7 * 86_400_000;
    };
  }),
  onClock("catches up one day at a time", (clock) => {
    let nowMs = clock.nowMs();
    return () => {
      nowMs = Math.min(clock.nowMs(), nowMs + 86_400_000);
      return nowMs;
    };
  }),
];
