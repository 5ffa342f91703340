import type { Clock } from "../../src/ambient/clock.ts";
import type { NewKey } from "../../src/domain/key.ts";
import type { exchangePermits } from "../../src/domain/permit-window.ts";
import type { ChangeFeed } from "../../src/store/change-feed.ts";
import type { KeyMutation } from "../../src/store/key-mutation.ts";
import type { IdempotencyRecord, KeyStore } from "../../src/store/key-store.ts";
import type { PermitEngine } from "../../src/store/permit-ledger.ts";
import type { RootKeyStore } from "../../src/store/root-key-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { UsageEngine } from "../../src/store/usage-ledger.ts";
import { createMemoryStore } from "../support/memory-store.ts";

/** A store with one plausible mistake: the simple store with one part replaced. */
export interface BrokenStore {
  readonly mistake: string;
  open(clock: Clock): Store;
}

export function keys(mistake: string, breakIt: (inner: KeyStore) => Partial<KeyStore>): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, keys: { ...inner.keys, ...breakIt(inner.keys) } };
    },
  };
}

type MutationOf<Kind> = Extract<KeyMutation, { readonly kind: Kind }>;

/** Makes mutations of one kind in another way, and all others as the plain store does. */
export function mutates<Kind extends KeyMutation["kind"]>(
  inner: KeyStore,
  kind: Kind,
  mutateInstead: (keyId: string, mutation: MutationOf<Kind>) => ReturnType<KeyStore["mutate"]>,
): Pick<KeyStore, "mutate"> {
  return {
    mutate: (keyId, mutation) =>
      mutation.kind === kind ? mutateInstead(keyId, mutation as MutationOf<Kind>) : inner.mutate(keyId, mutation),
  };
}

/** Stores something else than it was given. */
export function stores(mistake: string, change: (key: NewKey) => NewKey): BrokenStore {
  return keys(mistake, (inner) => ({ create: (key, record) => inner.create(change(key), record) }));
}

export function records(mistake: string, change: (record: IdempotencyRecord) => IdempotencyRecord): BrokenStore {
  return keys(mistake, (inner) => ({ create: (key, record) => inner.create(key, record && change(record)) }));
}

export function rootKeys(mistake: string, breakIt: (inner: RootKeyStore) => Partial<RootKeyStore>): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, rootKeys: { ...inner.rootKeys, ...breakIt(inner.rootKeys) } };
    },
  };
}

export function feed(
  mistake: string,
  breakIt: (inner: ChangeFeed["read"], store: Store) => ChangeFeed["read"],
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, changes: { read: breakIt(inner.changes.read, inner) } };
    },
  };
}

export function usage(mistake: string, breakIt: (inner: UsageEngine["settle"]) => UsageEngine["settle"]): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, usageLanes: inner.usageLanes.map(({ settle }) => ({ settle: breakIt(settle) })) };
    },
  };
}

export function permits(
  mistake: string,
  breakIt: (inner: PermitEngine["exchange"]) => PermitEngine["exchange"],
): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, permitLanes: inner.permitLanes.map(({ exchange }) => ({ exchange: breakIt(exchange) })) };
    },
  };
}

/** Settles asks by another rule. */
export function permitRule(mistake: string, rule: typeof exchangePermits): BrokenStore {
  return { mistake, open: (clock) => createMemoryStore(clock, rule) };
}

export function tidies(mistake: string, breakIt: (inner: Store["tidy"]) => Store["tidy"]): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      return { ...inner, tidy: breakIt(inner.tidy) };
    },
  };
}

export function onClock(mistake: string, wrong: (clock: Clock) => () => number): BrokenStore {
  return {
    mistake,
    open: (clock) => createMemoryStore({ nowMs: wrong(clock), monotonicMs: () => clock.monotonicMs() }),
  };
}

/** Callers that ask for the same at once share one answer: the effect of reading before writing. */
export function shared<T>(underWay: Map<string, Promise<T>>, name: string, ask: () => Promise<T>): Promise<T> {
  const joined = underWay.get(name);
  if (joined !== undefined) return joined;
  const asked = Promise.resolve()
    .then(ask)
    .finally(() => underWay.delete(name));
  underWay.set(name, asked);
  return asked;
}
