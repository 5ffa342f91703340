import type { Ambient } from "../ambient/ambient.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { Management } from "../store/management.ts";
import { type RootAccess, refusedManagement } from "../store/root-access.ts";

/** Who calls, and what that allows. */
export interface Caller {
  /** Undefined for public methods, whatever was presented. */
  readonly rootKey: Secret | undefined;
  /** What this caller may do. For public methods every call rejects with `RootKeyRefused`. */
  readonly management: Management;
}

/** The caller of every public method. */
export const anyone: Caller = { rootKey: undefined, management: refusedManagement };

/** Throws, or rejects with, `RootKeyRefused` or `Unavailable`. Answers synchronously where the root keys are known. */
export type Authorise = (presented: Secret) => MaybePromise<Caller>;

export interface AuthoriseDeps extends Pick<Ambient, "metrics"> {
  readonly rootAccess: RootAccess;
}

/**
 * Calls whose root key is being checked elsewhere. Each holds its body, up to 64 KB, and everyone can make such calls:
 * without a bound they could fill the process.
 */
const checksMax = 1000;

export function createAuthorise({ rootAccess, metrics }: AuthoriseDeps): Authorise {
  let checks = 0;

  function isRootKey(presented: Secret): MaybePromise<boolean> {
    if (checks >= checksMax) {
      metrics.shed("call");
      throw new Unavailable("too many root keys are being checked");
    }
    const checked = rootAccess.isRootKey(presented);
    if (!(checked instanceof Promise)) return checked;
    checks++;
    return checked.finally(() => checks--);
  }

  return (presented) =>
    andThen(isRootKey(presented), (isValid) => {
      if (!isValid) throw new RootKeyRefused();
      return { rootKey: presented, management: rootAccess.manage(presented) };
    });
}
