import type { Unavailable } from "../domain/unavailable.ts";

/** Whether a store can be relied on. Readiness follows `problem`; `guardStore` makes callers feel both. */
export interface StoreHealth {
  /** Why nothing may be asked of the store now; undefined while it can be used. */
  readonly problem: Unavailable | undefined;
  /** Why something that was not found may exist all the same; undefined when not found means that it does not exist. */
  readonly doubt: Unavailable | undefined;
  /** Looks at the store again. When it resolves, `problem` is up to date. Never rejects. */
  refresh(): Promise<void>;
  /** The listener is called after each change of `problem`. */
  onChange(listener: () => void): void;
}
