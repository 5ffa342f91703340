import type { Ambient } from "../ambient/ambient.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { covers } from "../domain/permissions.ts";
import { isInForce, lacksPermission, RootKeyRefused, type RootKeyVerdict } from "../domain/root-key.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { CheckRootKey } from "../store/root-access.ts";

/** Who calls with a root key, and what that allows. */
export interface Caller extends RootKeyVerdict {
  readonly rootKey: Secret;
}

/**
 * Whose root key this is. Throws, or rejects with, `RootKeyRefused` or `Unavailable`. Answers synchronously where it is known
 * what the root key allows.
 */
export type Authorise = (presented: Secret) => MaybePromise<Caller>;

/** Throws `Forbidden`. */
export function requirePermission(caller: Caller | undefined, permission: string): void {
  if (!covers(caller?.permissions ?? [], permission)) throw lacksPermission(permission);
}

export interface AuthoriseDeps extends Pick<Ambient, "metrics" | "clock"> {
  readonly checkRootKey: CheckRootKey;
}

/**
 * Calls whose root key is being checked elsewhere. Each holds its body, up to 64 KB, and everyone can make such calls:
 * without a bound they could fill the process.
 */
const checksMax = 1000;

export function createAuthorise({ checkRootKey, metrics, clock }: AuthoriseDeps): Authorise {
  let checks = 0;

  function check(presented: Secret): MaybePromise<RootKeyVerdict | undefined> {
    if (checks >= checksMax) {
      metrics.shed("call");
      throw new Unavailable("too many root keys are being checked", { nothingDone: true });
    }
    const checked = checkRootKey(presented);
    if (!(checked instanceof Promise)) return checked;
    checks++;
    return checked.finally(() => checks--);
  }

  return (presented) =>
    andThen(check(presented), (verdict) => {
      if (!isInForce(verdict, clock.nowMs())) throw new RootKeyRefused();
      return { ...verdict, rootKey: presented };
    });
}
