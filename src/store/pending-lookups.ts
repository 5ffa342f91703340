import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { type Pending, PendingTable } from "./pending-table.ts";

export interface AskedLookup<Found> {
  /** Asks the store, which answers callers with the same promise if they can share a look-up. */
  readonly ask: () => MaybePromise<Found>;
  /** Where its callers wait. */
  readonly room: WaitingRoom;
  /** Called with what was found, unless it may have changed since the store began to read it. The result is answered. */
  readonly cache: (found: Found) => Found;
  /** Called when the store was asked. */
  readonly onAsked?: (isShared: boolean) => void;
}

/**
 * Look-ups under way, by digest. A caller always asks the store, also while it is already asked for the same: that answer
 * may be older than a change that the caller knows of.
 */
export class PendingLookups<Found> {
  readonly #lookups = new PendingTable<Lookup<Found>>();

  lookUp(digest: string, { ask, room, cache, onAsked }: AskedLookup<Found>): MaybePromise<Found> {
    const latest = this.#lookups.latest(digest);
    const refusal = room.enter(this.#callersOf(latest));
    if (refusal !== undefined) return Promise.reject(refusal);
    const found = ask();
    const isShared = latest !== undefined && latest.found === found;
    onAsked?.(isShared);
    if (!(found instanceof Promise)) {
      room.leave();
      return cache(found);
    }
    return isShared ? join(latest) : this.#wait(digest, found, room, cache);
  }

  /** What is looked up under this digest may have changed. */
  outdate(digest: string): void {
    for (let at = this.#lookups.latest(digest); at !== undefined; at = this.#lookups.before(at)) markOutdated(at);
  }

  /** Anything may have changed. */
  outdateAll(): void {
    this.#lookups.forEach(markOutdated);
  }

  /** How many wait for the same, whichever look-up they wait for. */
  #callersOf(latest: Lookup<Found> | undefined): number {
    let callers = 0;
    for (let lookup = latest; lookup !== undefined; lookup = this.#lookups.before(lookup)) callers += lookup.callers;
    return callers;
  }

  #wait(digest: string, found: Promise<Found>, room: WaitingRoom, cache: AskedLookup<Found>["cache"]): Promise<Found> {
    const leave = () => {
      this.#lookups.remove(lookup);
      room.leave(lookup.callers);
    };
    const cached = found.then(
      (value) => {
        leave();
        return lookup.isOutdated ? value : cache(value);
      },
      (error: unknown) => {
        leave();
        throw error;
      },
    );
    const lookup: Lookup<Found> = { digest, next: undefined, found, cached, callers: 1, isOutdated: false };
    this.#lookups.add(lookup);
    return cached;
  }
}

interface Lookup<Found> extends Pending<Lookup<Found>> {
  /** The store's promise. */
  readonly found: Promise<Found>;
  readonly cached: Promise<Found>;
  callers: number;
  /** Whether it may have changed since the store began to read it. */
  isOutdated: boolean;
}

function join<Found>(lookup: Lookup<Found>): Promise<Found> {
  lookup.callers++;
  // The store has not begun to read it: what it will read is as of now or later.
  lookup.isOutdated = false;
  return lookup.cached;
}

/** It may have been read before the change: the answer must not be cached. */
function markOutdated<Found>(lookup: Lookup<Found>): void {
  lookup.isOutdated = true;
}
