import type { Unavailable } from "../domain/unavailable.ts";

/** Whether a store can be trusted. Readiness follows `problem`; `guardStore` applies both to calls. */
export interface StoreHealth {
  /** Why the store cannot be used now; undefined while it can. */
  readonly problem: Unavailable | undefined;
  /** Why "not found" cannot be trusted; undefined if it can. */
  readonly doubt: Unavailable | undefined;
  /** Checks the store again. When it resolves, `problem` is up to date. Never rejects. */
  refresh(): Promise<void>;
  /** The listener is called after each change of `problem`. */
  onChange(listener: () => void): void;
}
