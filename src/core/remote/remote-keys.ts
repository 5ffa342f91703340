import type { LookupAnswer } from "../../../gen/latchkey/core/v2/core_pb.js";
import { fromWireKey, fromWireOwner } from "../../../gen/resources/core/wire.ts";
import { withTimeout } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import type { Key } from "../../domain/key.ts";
import type { Owner } from "../../domain/owner.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import type { FeedNews } from "../../store/change-feed.ts";
import type { Change } from "../../store/changes.ts";
import type { KeyLookup, LookupOptions, OwnerLookup } from "../../store/key-lookup.ts";
import { requireAnswer } from "../wire.ts";
import type { Coordinators } from "./coordinators.ts";

export interface RemoteKeysDeps {
  readonly coordinators: Coordinators;
  readonly newDeadline: () => Deadline;
  /** The answer to a look-up is older than news of this change: it must not be remembered. */
  readonly onOldAnswer: (change: Change) => void;
}

/** Changed keys and owners that are remembered, to recognise old answers. Their news is a few seconds old at most. */
const changedMax = 100_000;
const tooLate = () => new Unavailable("the look-up was not answered in time");

/**
 * Looks keys and owners up at their coordinators. All look-ups of one turn share a message, and those of all edges a
 * statement. Two callers share a look-up only in the turn in which it is made: so what they get is never older than their
 * question.
 */
export class RemoteKeys implements KeyLookup, OwnerLookup {
  readonly #deps: RemoteKeysDeps;
  /** The look-ups of this turn: of keys by their digests, of owners by their counters. */
  #ofThisTurn = new Map<string, Promise<unknown>>();
  readonly #endOfTurn = new EndOfTurn(() => {
    this.#ofThisTurn = new Map();
  });
  /** What has changed, with the transaction of the news; the oldest first. Digests of keys, and counters of owners. */
  readonly #changed = new Map<string, number>();
  #epoch = "";

  constructor(deps: RemoteKeysDeps) {
    this.#deps = deps;
  }

  findByDigest(digest: string, options?: LookupOptions): Promise<Key | undefined> {
    return this.#share(digest, async () => {
      const question = { case: "lookup", value: { digest, isForeign: options?.foreign ?? false } } as const;
      const answer = requireAnswer(await this.#ask(digest, question), "lookup");
      if (this.#isOld(digest, answer)) this.#deps.onOldAnswer({ kind: "key", keyId: "", digests: [digest] });
      return answer.key && fromWireKey(answer.key);
    });
  }

  findOwner(ownerId: string): Promise<Owner | undefined> {
    const counter = counterOfOwner(ownerId);
    return this.#share(counter, async () => {
      const answer = requireAnswer(await this.#ask(counter, { case: "owner", value: { ownerId } }), "owner");
      if (this.#isOld(counter, answer)) this.#deps.onOldAnswer({ kind: "owner", ownerId, isNew: false });
      return answer.owner && fromWireOwner(answer.owner);
    });
  }

  #share<Found>(id: string, lookUp: () => Promise<Found>): Promise<Found> {
    const shared = this.#ofThisTurn.get(id) as Promise<Found> | undefined;
    if (shared !== undefined) return shared;
    const found = lookUp();
    this.#ofThisTurn.set(id, found);
    this.#endOfTurn.schedule();
    return found;
  }

  /** Called with each answer of the change feed. */
  onNews({ position, changed }: FeedNews): void {
    if (position.epoch !== this.#epoch) this.#changed.clear();
    this.#epoch = position.epoch;
    if (changed === "everything") return;
    for (const change of changed) {
      if (change.kind === "key") for (const digest of change.digests) this.#noteChanged(digest, position.transaction);
      if (change.kind === "owner") this.#noteChanged(counterOfOwner(change.ownerId), position.transaction);
    }
  }

  #noteChanged(id: string, transaction: number): void {
    this.#changed.delete(id);
    this.#changed.set(id, transaction);
    if (this.#changed.size <= changedMax) return;
    const [oldest] = this.#changed.keys();
    if (oldest !== undefined) this.#changed.delete(oldest);
  }

  /** The coordinator may not have known of a change that this edge knows of. */
  #isOld(id: string, { feedEpoch, feedTransaction }: Pick<LookupAnswer, "feedEpoch" | "feedTransaction">): boolean {
    const changedAt = this.#changed.get(id);
    return changedAt !== undefined && (feedEpoch !== this.#epoch || feedTransaction < changedAt);
  }

  #ask(...question: Parameters<Coordinators["read"]>): ReturnType<Coordinators["read"]> {
    const { coordinators, newDeadline } = this.#deps;
    return withTimeout(coordinators.read(...question), newDeadline(), tooLate);
  }
}
