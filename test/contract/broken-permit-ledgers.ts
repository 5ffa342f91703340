import type { CostRun } from "../../src/domain/cost-runs.ts";
import type { NewKey } from "../../src/domain/key.ts";
import { exchangePermits, neverOpened, type PermitAsk } from "../../src/domain/permit-window.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { PermitResult } from "../../src/store/permit-ledger.ts";
import { wantedBy } from "../ratelimit/strict/asks.ts";
import { ones } from "../support/ones.ts";
import { type BrokenStore, type KeyCalls, keys, permitRule, permits, shared } from "./break-store.ts";

const exchange = exchangePermits;

export const brokenPermitLedgers: readonly BrokenStore[] = [
  // Limits that asks bring
  permitRule("holds every ask to a limit of 5, whatever it brings", (before, ask, rule, nowMs) =>
    exchange(before, ask, ask.sentRule === undefined ? rule : { ...rule, limit: 5 }, nowMs),
  ),
  permitRule("begins the generations of a free-standing window at 1", (before, ask, rule, nowMs) =>
    exchange(
      ask.sentRule && before.gen > 1e9 && before.granted === 0 ? { ...before, gen: 0 } : before,
      ask,
      rule,
      nowMs,
    ),
  ),
  // How a window opens and ends
  permitRule("opens a window for a wish", (before, ask, rule, nowMs) => {
    const wished = nowMs >= before.endsAtMs && ask.inAdvance > 0;
    return exchange(before, wished ? withDemand(ask) : ask, rule, nowMs);
  }),
  permitRule("opens a window for a return", (before, ask, rule, nowMs) => {
    const opens = nowMs >= before.endsAtMs && ask.returned > 0;
    return exchange(before, opens ? withDemand(ask) : ask, rule, nowMs);
  }),
  permitRule("ends a window a millisecond early", (before, ask, rule, nowMs) =>
    exchange({ ...before, endsAtMs: before.endsAtMs - 1 }, ask, rule, nowMs),
  ),
  permitRule("ends a window a millisecond late", (before, ask, rule, nowMs) =>
    nowMs === before.endsAtMs ? exchange(before, ask, rule, nowMs - 1) : exchange(before, ask, rule, nowMs),
  ),
  permitRule("ends windows at full minutes", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    const endsAtMs = Math.ceil(window.endsAtMs / 60_000) * 60_000;
    return { window: { ...window, endsAtMs }, grant: { ...grant, endsAtMs, endsInMs: Math.max(0, endsAtMs - nowMs) } };
  }),
  permitRule("never ends a window", (before, ask, rule, nowMs) => {
    const endless = { endsAtMs: Number.MAX_SAFE_INTEGER, durationMs: Number.MAX_SAFE_INTEGER };
    return exchange(before.gen === 0 ? before : { ...before, ...endless }, ask, rule, nowMs);
  }),
  permitRule("counts the next window as the same", (before, ask, rule, nowMs) =>
    nowMs >= before.endsAtMs && before.gen > 0
      ? exchange({ ...before, gen: 0 }, ask, rule, nowMs)
      : exchange(before, ask, rule, nowMs),
  ),
  permitRule("moves an open window's end when the duration changes", (before, ask, rule, nowMs) =>
    exchange({ ...before, endsAtMs: Math.min(before.endsAtMs, nowMs + rule.durationMs) }, ask, rule, nowMs),
  ),
  permitRule("stretches an open window with every ask", (before, ask, rule, nowMs) => {
    const endsAtMs = nowMs < before.endsAtMs ? nowMs + rule.durationMs : before.endsAtMs;
    return exchange({ ...before, endsAtMs }, ask, rule, nowMs);
  }),

  // When its clock is set
  permitRule("keeps a window open until its true end, however far behind its clock is", (before, ask, rule, nowMs) =>
    exchange({ ...before, durationMs: Number.MAX_SAFE_INTEGER }, ask, rule, nowMs),
  ),
  permitRule("clamps a window's end by the rule of now", (before, ask, rule, nowMs) =>
    exchange({ ...before, durationMs: before.gen === 0 ? 0 : rule.durationMs }, ask, rule, nowMs),
  ),
  permitRule("overwrites the true end with the clamped one", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    const endsAtMs = window.clampedEndsAtMs === 0 ? window.endsAtMs : window.clampedEndsAtMs;
    return { window: { ...window, endsAtMs, clampedEndsAtMs: 0 }, grant };
  }),
  permitRule("clamps a window's end again with each ask", (before, ask, rule, nowMs) =>
    exchange({ ...before, clampedEndsAtMs: 0 }, ask, rule, nowMs),
  ),
  permitRule("keeps a clamped end when the clock is set back further", (before, ask, rule, nowMs) => {
    const durationMs = before.clampedEndsAtMs === 0 ? before.durationMs : before.clampedEndsAtMs - nowMs;
    const { window, grant } = exchange({ ...before, durationMs }, ask, rule, nowMs);
    const kept = window.gen === before.gen ? before.durationMs : window.durationMs;
    return { window: { ...window, durationMs: kept }, grant: { ...grant, durationMs: kept } };
  }),
  permitRule("ends a window at once when its clock is behind", (before, ask, rule, nowMs) => {
    const isBehind = before.endsAtMs - nowMs > before.durationMs;
    return exchange(isBehind ? { ...before, endsAtMs: nowMs } : before, ask, rule, nowMs);
  }),
  permitRule("gives in advance by a clock that is behind", (before, ask, rule, nowMs) => {
    const isBehind = exchange(before, ask, rule, nowMs).grant.clockBehind;
    return exchange(before, isBehind ? allWaited(ask) : ask, rule, nowMs);
  }),
  permitRule("gives nothing in advance for the rest of a window whose clock was behind", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    return { window: { ...window, contended: grant.contended }, grant };
  }),
  permitRule("does not say that its clock is behind", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    return { window, grant: { ...grant, clockBehind: false } };
  }),
  permitRule("opens no window by a clock that is ahead", (before, ask, rule, nowMs) =>
    nowMs - before.endsAtMs > rule.durationMs && before.gen > 0
      ? exchange({ ...before, endsAtMs: nowMs + 1, durationMs: rule.durationMs }, ask, rule, nowMs)
      : exchange(before, ask, rule, nowMs),
  ),

  // Granted permits
  permitRule("grants one permit too many", (before, ask, rule, nowMs) =>
    exchange(before, ask, { ...rule, limit: rule.limit + 1 }, nowMs),
  ),
  permitRule("grants all that is wanted or nothing", (before, ask, rule, nowMs) => {
    const settled = exchange(before, ask, rule, nowMs);
    return settled.grant.granted < wantedBy(ask) ? exchange(before, { ...ask, waiting: [] }, rule, nowMs) : settled;
  }),
  permitRule("takes permits away when the limit is lowered", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    const granted = Math.min(window.granted, rule.limit);
    return { window: { ...window, granted }, grant: { ...grant, outstanding: granted - window.spent } };
  }),
  permitRule("gives in advance all that is wanted", (before, ask, rule, nowMs) =>
    exchange(before, ask.waiting.length > 0 ? allWaited(ask) : ask, rule, nowMs),
  ),
  permitRule("gives nothing in advance", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, inAdvance: 0 }, rule, nowMs),
  ),
  permitRule("thinks that every asker is alone", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, holders: 1 }, rule, nowMs),
  ),
  permitRule("gives in advance until nothing is left", (before, ask, rule, nowMs) =>
    exchange({ ...before, contended: false }, ask, rule, nowMs),
  ),
  permitRule("never gives in advance again", (before, ask, rule, nowMs) => {
    const { window, grant } = exchange(before, ask, rule, nowMs);
    const contended = before.contended || window.contended;
    return { window: { ...window, contended }, grant: { ...grant, contended } };
  }),
  permitRule("counts permits in 24 bits", (before, ask, rule, nowMs) =>
    exchange({ ...before, granted: before.granted & 0xffffff }, ask, rule, nowMs),
  ),
  permitRule("keeps durations in 31 bits", (before, ask, rule, nowMs) =>
    exchange(before, ask, { ...rule, durationMs: rule.durationMs | 0 }, nowMs),
  ),

  // Costs
  permitRule("grants a part of a cost", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, waiting: ones(wantedBy(ask)) }, rule, nowMs),
  ),
  permitRule("grants nothing behind a cost that does not fit", (before, ask, rule, nowMs) => {
    const served = servedUpTo(before, ask, rule, nowMs);
    return exchange(before, { ...ask, waiting: ask.waiting.slice(0, served) }, rule, nowMs);
  }),
  permitRule("grants the smallest costs first", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, waiting: ask.waiting.toSorted((a, b) => a.cost - b.cost) }, rule, nowMs),
  ),
  permitRule("grants all of a run or none", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, waiting: ask.waiting.map(asOne) }, rule, nowMs),
  ),
  permitRule("gives in advance while a cost waits in vain", (before, ask, rule, nowMs) => {
    const settled = exchange(before, ask, rule, nowMs);
    const waiting = ones(settled.grant.granted);
    const isShort = settled.grant.granted < wantedBy(ask) && settled.window.gen === before.gen;
    return isShort ? exchange(before, { ...ask, waiting }, rule, nowMs) : settled;
  }),
  permitRule("opens a window for a cost above the limit", (before, ask, rule, nowMs) => {
    const opens = nowMs >= before.endsAtMs && ask.waiting.some(({ cost, count }) => cost > rule.limit && count > 0);
    if (!opens) return exchange(before, ask, rule, nowMs);
    const { window } = exchange(before, { ...ask, waiting: ones(1), inAdvance: 0 }, rule, nowMs);
    return exchange({ ...window, granted: 0 }, ask, rule, nowMs);
  }),
  permitRule("counts a cost as one permit", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, waiting: ask.waiting.map(({ count }) => ({ cost: 1, count })) }, rule, nowMs),
  ),

  // Returned permits
  permitRule("credits a return to the open window, even if it belongs to another", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, gen: before.gen }, rule, nowMs),
  ),
  permitRule("forgets returns", (before, ask, rule, nowMs) => exchange(before, { ...ask, returned: 0 }, rule, nowMs)),
  permitRule("credits a return twice", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, returned: 2 * ask.returned }, rule, nowMs),
  ),
  permitRule("credits a return after it has granted", (before, ask, rule, nowMs) => {
    const { window } = exchange(before, { ...ask, returned: 0, spent: 0 }, rule, nowMs);
    return {
      window: exchange(window, { ...ask, waiting: [], inAdvance: 0 }, rule, nowMs).window,
      grant: exchange(before, { ...ask, returned: 0, spent: 0 }, rule, nowMs).grant,
    };
  }),
  permitRule("believes a return of more than is out", (before, ask, rule, nowMs) => {
    const isOwn = ask.gen === before.gen && nowMs < before.endsAtMs;
    const granted = before.granted - (isOwn ? ask.returned : 0);
    return exchange({ ...before, granted }, { ...ask, returned: 0 }, rule, nowMs);
  }),
  permitRule("takes permits back by a negative return", (before, ask, rule, nowMs) => {
    const granted = before.granted - (ask.gen === before.gen ? Math.min(0, ask.returned) : 0);
    return exchange({ ...before, granted }, ask, rule, nowMs);
  }),
  permitRule("forgets what was spent", (before, ask, rule, nowMs) =>
    exchange(before, { ...ask, spent: 0 }, rule, nowMs),
  ),
  permitRule("takes a return before the report that came with it", (before, ask, rule, nowMs) => {
    const { window } = exchange(before, { ...ask, waiting: [], inAdvance: 0, spent: 0 }, rule, nowMs);
    return exchange(window, { ...ask, returned: 0 }, rule, nowMs);
  }),
  permitRule("carries a return over into the window that it opens", (before, ask, rule, nowMs) => {
    const opens = nowMs >= before.endsAtMs && ask.waiting.length > 0 && ask.returned > 0;
    return exchange(before, ask, opens ? { ...rule, limit: rule.limit + ask.returned } : rule, nowMs);
  }),

  // Many keys
  permits("reads a window and writes it back later", (inner) => {
    const underWay = new Map<string, Promise<readonly PermitResult[]>>();
    return (asks) => shared(underWay, JSON.stringify(asks), () => inner(asks));
  }),
  permits("drops missing keys from its answer to asks", (inner) => async (asks) => {
    return (await inner(asks)).filter(({ outcome }) => outcome !== "missing");
  }),
  permits("fails all asks for one missing key", (inner) => async (asks) => {
    const results = await inner(asks);
    return results.some(({ outcome }) => outcome === "missing") ? asks.map(() => ({ outcome: "missing" })) : results;
  }),
  permits(
    "answers asks in the order of the keys",
    (inner) => (asks) => inner(asks.toSorted((a, b) => (a.subject < b.subject ? -1 : 1))),
  ),
  permits("takes at most 100 asks a call", (inner) => (asks) => inner(asks.slice(0, 100))),
  permits("cannot take no asks", (inner) => async (asks) => {
    if (asks.length === 0) throw new Error("a syntax error at the closing bracket");
    return inner(asks);
  }),
  permits("makes up a window for a key that it does not know", (inner) => async (asks) => {
    const results = await inner(asks);
    return results.map((result) => {
      if (result.outcome !== "missing") return result;
      return { outcome: "settled", ...exchange(neverOpened, asks[0] as never, { limit: 1, durationMs: 1 }, 0).grant };
    });
  }),

  // Changed limits
  changes("ignores a changed limit", (inner, { id, rateLimit }) => inner.setRateLimit(id, rateLimit)),
  changes("answers no digests to a changed limit", async (inner, { id }, rateLimit) =>
    (await inner.setRateLimit(id, rateLimit)) ? [] : undefined,
  ),
  changes(
    "answers to every change of a limit",
    async (inner, { id }, rateLimit) => (await inner.setRateLimit(id, rateLimit)) ?? [],
  ),
  changes("forgets the owner of a key whose limit it changes", (inner, key, rateLimit) =>
    remade(inner, { ...key, ownerId: undefined, rateLimit }),
  ),
  changes("begins a new window with a changed limit", (inner, key, rateLimit) => remade(inner, { ...key, rateLimit })),
  changes("begins a new window when a key becomes strict again", (inner, key, rateLimit) =>
    rateLimit?.mode === "strict" ? inner.setRateLimit(key.id, rateLimit) : remade(inner, { ...key, rateLimit }),
  ),
  changes("cannot remove a limit", (inner, { id }, rateLimit) =>
    inner.setRateLimit(id, rateLimit ?? { mode: "local", limit: 1, durationMs: 1000 }),
  ),
  changes("gives no window to a key that becomes strict", (inner, key, rateLimit) =>
    inner.setRateLimit(
      key.id,
      rateLimit && key.rateLimit?.mode !== "strict" ? { ...rateLimit, mode: "local" } : rateLimit,
    ),
  ),
  changes("makes a key where there is none to change", async (inner, key, rateLimit) => {
    const digests = await inner.setRateLimit(key.id, rateLimit);
    if (digests === undefined) await inner.create({ ...key, rateLimit });
    return digests;
  }),
];

function withDemand(ask: PermitAsk): PermitAsk {
  return { ...ask, waiting: wantedBy(ask) > 0 ? ask.waiting : ones(1) };
}

/** As if requests waited for all that is wanted in advance. */
function allWaited(ask: PermitAsk): PermitAsk {
  return { ...ask, waiting: [...ask.waiting, ...ones(Math.max(0, ask.inAdvance))], inAdvance: 0 };
}

/** How many runs are served before the first that is not. */
function servedUpTo(...[before, ask, rule, nowMs]: Parameters<typeof exchange>): number {
  const at = ask.waiting.findIndex((_, i) => {
    const waiting = ask.waiting.slice(0, i + 1);
    const { granted } = exchange(before, { ...ask, waiting, inAdvance: 0 }, rule, nowMs).grant;
    return granted < wantedBy({ waiting });
  });
  return at < 0 ? ask.waiting.length : at + 1;
}

function asOne({ cost, count }: CostRun): CostRun {
  return { cost: cost * count, count: 1 };
}

type Change = (
  inner: KeyCalls,
  key: NewKey,
  rateLimit: RateLimit | undefined,
) => Promise<readonly string[] | undefined>;

/** Changes rate limits in another way. `change` gets the key as it was created, or only the id of an unknown key. */
function changes(mistake: string, change: Change): BrokenStore {
  return keys(mistake, (inner) => {
    const made = new Map<string, NewKey>();
    return {
      create(key, record) {
        made.set(key.id, key);
        return inner.create(key, record);
      },
      setRateLimit: (id, rateLimit) => change(inner, made.get(id) ?? ({ id } as NewKey), rateLimit),
    };
  });
}

async function remade(inner: KeyCalls, key: NewKey): Promise<readonly string[] | undefined> {
  const digests = await inner.delete(key.id);
  if (digests !== undefined) await inner.create(key);
  return digests;
}
