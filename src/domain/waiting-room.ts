import { Unavailable } from "./unavailable.ts";

/** The part of all places that calls for one key may take, so that a flood on one key leaves room for the others. */
const shareOfOneKey = 1 / 10;

/**
 * The calls that wait inside this process, for a look-up, a permit or a commit. The number of places is limited. A call
 * without a place is rejected immediately, which is better than letting all calls wait too long.
 */
export class WaitingRoom {
  #callsMax = 0;
  #callsPerKeyMax = 0;
  /** The rooms within this one, with their shares. */
  readonly #parts = new Map<WaitingRoom, number>();
  readonly #onRejected: () => void;
  readonly #outer: WaitingRoom | undefined;
  #taken = 0;

  constructor(callsMax: number, onRejected: () => void = () => {}, outer?: WaitingRoom) {
    this.#outer = outer;
    this.#onRejected = onRejected;
    this.resize(callsMax);
  }

  /** Calls that have a place keep it. */
  resize(callsMax: number): void {
    this.#callsMax = callsMax;
    this.#callsPerKeyMax = Math.max(1, Math.floor(callsMax * shareOfOneKey));
    for (const [part, share] of this.#parts) part.resize(this.#placesOf(share));
  }

  /** A room within this one, with this part of its places: a call in it takes a place of both. */
  part(share: number): WaitingRoom {
    const part = new WaitingRoom(this.#placesOf(share), this.#onRejected, this);
    this.#parts.set(part, share);
    return part;
  }

  #placesOf(share: number): number {
    return Math.max(1, Math.floor(this.#callsMax * share));
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place, or returns the reason why there is none. `sameSubject`: calls that already wait for the same key. */
  enter(sameSubject: number): Unavailable | undefined {
    if (this.#taken < this.#callsMax && sameSubject < this.#callsPerKeyMax) {
      const refusal = this.#outer?.enter(sameSubject);
      if (refusal === undefined) this.#taken++;
      return refusal;
    }
    this.#onRejected();
    return sameSubject < this.#callsPerKeyMax ? full : keyFull;
  }

  leave(count = 1): void {
    this.#taken -= count;
    this.#outer?.leave(count);
  }
}

// Created once: their stack traces say nothing, and a new one for each call would cost as much as the rest of a refusal.
const full = new Unavailable("too many calls are waiting", { nothingDone: true });
const keyFull = new Unavailable("too many calls are waiting for this key", { nothingDone: true });
