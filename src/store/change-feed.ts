import type { Change, KeyChange } from "./changes.ts";

/** Every change of keys and root keys, as its transaction has left it in the store. Why it is built so: adr 18. */
export interface ChangeFeed {
  /**
   * What has changed since the position. Resolves only if the ledger has confirmed, after the call, that it takes
   * commits: a primary that was cut off must not pass for the ledger. Without a position, or if changes since then may
   * be missing from the feed, everything counts as changed. A change may be reported more than once. Throws `Unavailable`.
   */
  read(since: FeedPosition | undefined): Promise<FeedNews>;
}

/** A point in the feed. Plain data, with the same meaning in every process. */
export interface FeedPosition {
  /** Positions of different epochs cannot be compared. It changes when the data is restored from a backup. */
  readonly epoch: string;
  /** All changes of transactions below this one have been reported. Others may still come, whenever they began. */
  readonly transaction: number;
  /** The latest heartbeat before the position. A database without it has lost commits: it does not know what changed. */
  readonly heartbeat?: { readonly reader: string; readonly count: number };
  /** Changes at or above `transaction` that were reported too: the same session need not report them again. */
  readonly reported?: { readonly session: string; readonly snapshot: string };
}

export interface FeedNews {
  /** Where the next read begins. */
  readonly position: FeedPosition;
  readonly changed: "everything" | readonly FeedChange[];
  /** Whether keys were ever imported. It never goes back to false. */
  readonly hasImportedKeys: boolean;
  /** How old the news already was when it was asked for: 0 if it comes from the store itself. */
  readonly ageMs: number;
}

/** A change with everything that is to be known of it: the digests of a key are. */
export type FeedChange =
  | Exclude<Change, { readonly kind: "key" }>
  | ({ readonly kind: "key" } & KeyChange & { readonly digests: readonly string[] });
