import { existsSync } from "node:fs";
import { sameValue } from "../config/same-value.ts";
import type { Core } from "../core/core.ts";
import { LedgerProbe } from "../core/serve/ledger-probe.ts";
import { slowWaitMaxMs } from "../domain/deadlines.ts";
import { Coordinator } from "../ratelimit/coordinator/coordinator.ts";
import { explainPermission } from "../rpc/all-endpoints.ts";
import { CachedVerdicts } from "../store/cached-verdicts.ts";
import { CoalescingUsageLedger } from "../store/coalescing-usage-ledger.ts";
import { LedgerWatch } from "../store/ledger-watch.ts";
import type { Management } from "../store/management.ts";
import { requireApis } from "../store/management.ts";
import type { CheckRootKey } from "../store/root-access.ts";
import type { Store } from "../store/store.ts";
import { createReadHolders } from "../usecases/read-holders.ts";
import { RootKeys } from "../usecases/root-keys.ts";
import { openStore, untilAvailable } from "./open-store.ts";
import type { OpenedCore } from "./opened-core.ts";
import type { StartOptions } from "./running-server.ts";
import { rootKeyFileFix, rootKeyFileOf, writeRootKey } from "./write-root-key.ts";

export interface LocalCore extends OpenedCore {
  readonly core: Core & { readonly usage: CoalescingUsageLedger };
  readonly manages: { readonly management: Management };
  /** What a text allows as a root key, as the store knows it now. */
  readonly checkRootKey: CheckRootKey;
  readonly store: Store;
  readonly coordinator: Coordinator;
  /** Only where edges have to know whether the ledger answers. */
  readonly probe: LedgerProbe | undefined;
}

const tidyEveryMs = 3_600_000;
/** In UTC. */
const spendingTidyHour = 4;
const dayMs = 86_400_000;
const yearMs = 366 * dayMs;

/** A core in this process: the store with its ledgers, and the root keys. */
export async function openLocalCore(options: StartOptions): Promise<LocalCore> {
  const { settings, live, waitingRoom, teardown, clock, log, metrics } = options;
  const watch = new LedgerWatch(options);
  const { store, usable } = await openStore({ ...options, watch });
  teardown.add("store", () => store.close());
  const probe = settings.role === "coordinator" ? probeLedger(store, options) : undefined;
  const usage = new CoalescingUsageLedger(store.usageLanes, { clock, metrics, waitingRoom, watch });
  const coordinator = createCoordinator(probe?.engines ?? store.permitLanes, options);
  teardown.add("ledgers", async () => {
    await Promise.all([usage.drained(), coordinator.drained()]);
    probe?.stop();
  });
  const { rootKeys: configured, generateRootKey: mayGenerateAgain } = settings;
  const rootKeys = new RootKeys({ ...options, configured, mayGenerateAgain, store: store.rootKeys });
  const retireGenerated = () =>
    rootKeys.retireGenerated().catch((error: Error) => {
      // It is tried again at the next start. Until then this process does not take it.
      log.warn("could not retire the generated root key", { reason: error.message });
    });
  live.follow((next, before) => {
    if (sameValue(next.rootKeys, before.rootKeys)) return;
    rootKeys.configure(next.rootKeys);
    // Not waited for: a slow store must not delay what this process does with a root key that is left out.
    void retireGenerated();
    rootKeys.announceChange().catch((error: Error) => {
      log.warn("could not announce that root keys have changed", { reason: error.message });
    });
  });
  const check: CheckRootKey = (presented) => rootKeys.check(presented);
  const verdicts = new CachedVerdicts(check, settings.cacheTtlMs, clock);
  // Edges remember what a coordinator says, and may know of newer changes than it does: it asks the store each time.
  const checkRootKey = settings.role === "coordinator" ? check : verdicts.check;
  const management = settings.apis === "explicit" ? requireApis(store.management) : store.management;
  const tidy = () => {
    // After a failure the next run, or another process, does it.
    const nowMs = clock.nowMs();
    const { auditDays, spendingDays, spendingYears } = live.current;
    const eventsBeforeMs = auditDays === 0 ? undefined : nowMs - auditDays * dayMs;
    // Each subject is looked at: once a day is enough.
    const isDue = Math.floor((nowMs % dayMs) / tidyEveryMs) === spendingTidyHour;
    const readings = { hoursBeforeMs: nowMs - spendingDays * dayMs, daysBeforeMs: nowMs - spendingYears * yearMs };
    store
      .tidy(nowMs, { eventsBeforeMs, readings: isDue ? readings : undefined })
      .catch((error: Error) => log.warn("could not tidy the store", { reason: error.message }));
  };
  let tidying: NodeJS.Timeout | undefined;
  teardown.add("tidying", () => clearInterval(tidying));
  return {
    core: {
      keys: store.keys,
      usage,
      changes: store.changes,
      joinPermits: (onRecall) => coordinator.join(onRecall),
      windows: undefined,
      get pathMs() {
        return store.roundTripMs?.();
      },
    },
    store,
    coordinator,
    probe,
    usable,
    health: store.health,
    verdicts,
    checkRootKey,
    readHolders: createReadHolders({ ...options, checkRootKey, management, permission: explainPermission }),
    manages: { management },
    prepare: (isStopping) => untilAvailable(() => rootKeys.areAny(), isStopping),
    async completeStart() {
      // Only after the port was bound: a generated root key is printed once, and must not be lost by a failed start.
      const file = rootKeyFileOf(settings);
      const generated = await rootKeys.generateFirst((rootKey) => writeRootKey(file, rootKey));
      // With Postgres the file may be in the folder of another replica.
      if (settings.databaseUrl === undefined && !existsSync(file) && (await rootKeys.isGeneratedOnly()))
        log.warn("the only root key is the generated one, and its file is missing", { file, fix: rootKeyFileFix });
      await retireGenerated();
      tidy();
      tidying = setInterval(tidy, tidyEveryMs).unref();
      return generated;
    },
  };
}

function probeLedger(store: Store, { clock, metrics }: StartOptions): LedgerProbe {
  const isInProcess = store.roundTripMs === undefined;
  const probe = new LedgerProbe(store.permitLanes, clock, isInProcess ? slowWaitMaxMs : undefined);
  const help = "Whether the permit ledger answers this coordinator: 1 or 0.";
  metrics.gauge("latchkey_permit_ledger_up", help, () => Number(!probe.isAway));
  return probe;
}

function createCoordinator(permitLanes: Store["permitLanes"], options: StartOptions): Coordinator {
  const coordinator = new Coordinator(permitLanes, options);
  const help = "Seconds since the permit ledger last answered. It is asked only when somebody wants permits.";
  options.metrics.gauge("latchkey_permit_ledger_silent_seconds", help, () => coordinator.silentMs / 1000);
  return coordinator;
}
