import { Unavailable } from "./unavailable.ts";

/** Of all places, what those who wait for the same key may take: one key's flood must leave room for the others. */
const shareOfOneKey = 1 / 10;

/**
 * The calls that wait inside this process, for a look-up, a permit or a commit. There are so many places; whoever finds
 * none is turned away at once, which costs less than to let everybody wait too long.
 */
export class WaitingRoom {
  readonly #places: number;
  readonly #placesOfOneKey: number;
  readonly #onTurnedAway: () => void;
  #taken = 0;

  constructor(places: number, onTurnedAway: () => void = () => {}) {
    this.#places = places;
    this.#placesOfOneKey = Math.max(1, Math.floor(places * shareOfOneKey));
    this.#onTurnedAway = onTurnedAway;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place, where so many wait for the same key already. Otherwise answers why there is none. */
  enter(sameKey: number): Unavailable | undefined {
    if (this.#taken < this.#places && sameKey < this.#placesOfOneKey) {
      this.#taken++;
      return undefined;
    }
    this.#onTurnedAway();
    return sameKey < this.#placesOfOneKey ? full : keyFull;
  }

  leave(count = 1): void {
    this.#taken -= count;
  }
}

// Made once: where they come from says nothing, and to find that out each time costs as much as the rest of a refusal.
const full = new Unavailable("too many calls are waiting");
const keyFull = new Unavailable("too many calls are waiting for this key");
