import type { Core } from "../core/core.ts";
import type { Secret } from "../domain/secret.ts";
import type { CarryOut } from "../rpc/forwarded-calls.ts";
import type { CachedVerdicts } from "../store/cached-verdicts.ts";
import type { Management } from "../store/management.ts";
import type { ReadHolders } from "../store/root-access.ts";
import type { StoreHealth } from "../store/store-health.ts";

/** A core as a process starts with it: in the process, or behind coordinators. */
export interface OpenedCore {
  readonly core: Core;
  /** Resolves when the core can be used; rejects when it never will be. */
  readonly usable: Promise<void>;
  /** Absent if the core can always be used once it is usable. */
  readonly health: StoreHealth | undefined;
  /** Reads what has to be known before the first request. Answers false if no caller can have a root key yet. */
  prepare(isStopping: () => boolean): Promise<boolean>;
  /** The last step of a start, after the port was bound. Answers a root key that was just generated. */
  completeStart(): Promise<Secret | undefined>;
  /** What the core says of root keys, remembered in this process. */
  readonly verdicts: CachedVerdicts;
  readonly readHolders: ReadHolders;
  /** What management calls are carried out with here, or who carries them out elsewhere. */
  readonly manages: { readonly management: Management } | { readonly carryOut: CarryOut };
}
