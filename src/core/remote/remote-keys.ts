import type { Key } from "../../domain/key.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import type { FeedNews } from "../../store/change-feed.ts";
import type { KeyLookup, LookupOptions } from "../../store/key-lookup.ts";
import { answerOf } from "../wire.ts";
import { fromWireKey } from "../wire-keys.ts";
import type { Coordinators } from "./coordinators.ts";
import { within } from "./within.ts";

export interface RemoteKeysDeps {
  readonly coordinators: Coordinators;
  readonly timeoutMs: () => number;
  /** The answer to a look-up of this digest is older than news of its key: it must not be remembered. */
  readonly onOldAnswer: (digest: string) => void;
}

/** Changed keys that are remembered, to recognise old answers. Their news is a few seconds old at most. */
const changedMax = 100_000;

/**
 * Looks keys up at their coordinators. All look-ups of one turn share a message, and those of all edges a statement. Two
 * callers share a look-up only in the turn in which it is made: so what they get is never older than their question.
 */
export class RemoteKeys implements KeyLookup {
  readonly #deps: RemoteKeysDeps;
  /** The look-ups of this turn, by digest. */
  #ofThisTurn = new Map<string, Promise<Key | undefined>>();
  readonly #endOfTurn = new EndOfTurn(() => {
    this.#ofThisTurn = new Map();
  });
  /** Secrets whose keys have changed, by digest, with the transaction of the news; the oldest first. */
  readonly #changed = new Map<string, number>();
  #epoch = "";

  constructor(deps: RemoteKeysDeps) {
    this.#deps = deps;
  }

  findByDigest(digest: string, options?: LookupOptions): Promise<Key | undefined> {
    const shared = this.#ofThisTurn.get(digest);
    if (shared !== undefined) return shared;
    const found = this.#lookUp(digest, options?.foreign ?? false);
    this.#ofThisTurn.set(digest, found);
    this.#endOfTurn.schedule();
    return found;
  }

  /** What the change feed has told. */
  onNews({ position, changed }: FeedNews): void {
    if (position.epoch !== this.#epoch) this.#changed.clear();
    this.#epoch = position.epoch;
    if (changed === "everything") return;
    for (const change of changed) {
      if (change.kind === "key") for (const digest of change.digests) this.#noteChanged(digest, position.transaction);
    }
  }

  #noteChanged(digest: string, transaction: number): void {
    this.#changed.delete(digest);
    this.#changed.set(digest, transaction);
    if (this.#changed.size <= changedMax) return;
    const [oldest] = this.#changed.keys();
    if (oldest !== undefined) this.#changed.delete(oldest);
  }

  async #lookUp(digest: string, isForeign: boolean): Promise<Key | undefined> {
    const { coordinators, timeoutMs, onOldAnswer } = this.#deps;
    const asked = coordinators.read(digest, { case: "lookup", value: { digest, isForeign } });
    const received = await within(timeoutMs(), asked, "the look-up was not answered in time");
    const { key, feedTransaction, feedEpoch } = answerOf(received, "lookup");
    const changedAt = this.#changed.get(digest);
    // The coordinator may not have known of the change that this edge knows of.
    if (changedAt !== undefined && (feedEpoch !== this.#epoch || feedTransaction < changedAt)) onOldAnswer(digest);
    return key && fromWireKey(key);
  }
}
