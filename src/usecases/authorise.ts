import type { Ambient } from "../ambient/ambient.ts";
import { lacksPermission } from "../domain/forbidden.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { covers } from "../domain/permissions.ts";
import { isInForce, type RootKeyVerdict } from "../domain/root-key.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { Management } from "../store/management.ts";
import { type RootAccess, refusedManagement } from "../store/root-access.ts";

/** Who calls, and what that allows. */
export interface Caller {
  /** Undefined for public methods, whatever was presented. */
  readonly rootKey: Secret | undefined;
  readonly rootKeyId: string | undefined;
  readonly permissions: readonly string[];
  /** The APIs that the caller may know of; undefined: all. */
  readonly apiIds: readonly string[] | undefined;
  /** What this caller may do. For public methods every call rejects with `RootKeyRefused`. */
  readonly management: Management;
}

/** The caller of every public method. */
export const anyone: Caller = {
  rootKey: undefined,
  rootKeyId: undefined,
  permissions: [],
  apiIds: undefined,
  management: refusedManagement,
};

/**
 * Whose root key this is. Throws, or rejects with, `RootKeyRefused` or `Unavailable`. Answers synchronously where it is known
 * what the root key allows.
 */
export type Authorise = (presented: Secret) => MaybePromise<Caller>;

/** Throws `Forbidden`. */
export function requirePermission({ permissions }: Caller, permission: string): void {
  if (!covers(permissions, permission)) throw lacksPermission(permission);
}

export interface AuthoriseDeps extends Pick<Ambient, "metrics" | "clock"> {
  readonly rootAccess: RootAccess;
}

/**
 * Calls whose root key is being checked elsewhere. Each holds its body, up to 64 KB, and everyone can make such calls:
 * without a bound they could fill the process.
 */
const checksMax = 1000;

export function createAuthorise({ rootAccess, metrics, clock }: AuthoriseDeps): Authorise {
  let checks = 0;

  function check(presented: Secret): MaybePromise<RootKeyVerdict | undefined> {
    if (checks >= checksMax) {
      metrics.shed("call");
      throw new Unavailable("too many root keys are being checked", { nothingDone: true });
    }
    const checked = rootAccess.check(presented);
    if (!(checked instanceof Promise)) return checked;
    checks++;
    return checked.finally(() => checks--);
  }

  return (presented) =>
    andThen(check(presented), (verdict) => {
      if (!isInForce(verdict, clock.nowMs())) throw new RootKeyRefused();
      const { rootKeyId, permissions, apiIds } = verdict;
      return { rootKey: presented, rootKeyId, permissions, apiIds, management: rootAccess.manage(presented) };
    });
}
