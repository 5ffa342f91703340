import { CachedVerdicts } from "../store/cached-verdicts.ts";
import type { Change } from "../store/changes.ts";
import type { OpenedCore } from "./opened-core.ts";
import type { StartOptions } from "./running-server.ts";

export interface RemoteCoreDeps extends StartOptions {
  /** The answer to a look-up must not be remembered: it is older than this change. */
  readonly onOldAnswer: (change: Change) => void;
  /** Called with what a management call has changed. It is answered when this resolves. */
  readonly onChanged: (changed: readonly Change[] | "everything") => Promise<void>;
  /** Called with changes that were just made through the main process of this worker. */
  readonly onAnnounced: (changes: readonly Change[]) => void;
}

/** A core behind coordinators. An edge knows no root keys, and makes none. */
export async function connectRemoteCore(deps: RemoteCoreDeps): Promise<OpenedCore> {
  const { settings, live, clock, metrics, teardown } = deps;
  // Loaded only if used.
  const { RemoteCore } = await import("../core/remote/remote-core.ts");
  const credentials = () => {
    const { internalSecrets, internalCa: ca, internalTls } = live.current;
    return { secret: internalSecrets[0], ca, ...internalTls };
  };
  const onShed = () => metrics.shed("call");
  const core = new RemoteCore({ ...deps, addresses: settings.coordinators, credentials, onShed });
  teardown.add("links to coordinators", () => core.close());
  for (const { address, link } of deps.mainProcess ? [] : core.coordinators.links) {
    const help = "Whether the coordinator of this address can be reached: 1 or 0.";
    metrics.gauge("latchkey_coordinator_up", help, () => Number(link.isUp), { address });
    const ledgerHelp = "Whether the coordinator of this address can be reached and its ledger answers it: 1 or 0.";
    metrics.gauge("latchkey_coordinator_ledger_up", ledgerHelp, () => Number(link.hasLedger), { address });
    const pathHelp = "The round trip to the coordinator of this address and on to its ledger, in seconds.";
    metrics.gauge("latchkey_coordinator_path_seconds", pathHelp, () => link.pathMs / 1000, { address });
  }
  return {
    core,
    usable: core.usable,
    health: undefined,
    prepare: async () => true,
    completeStart: async () => undefined,
    verdicts: new CachedVerdicts(core.management.check, settings.cacheTtlMs, clock),
    readHolders: core.management.readHolders,
    manages: { carryOut: core.management.carryOut },
  };
}
