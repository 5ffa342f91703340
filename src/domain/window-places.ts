import { isFreeStanding } from "./subject.ts";
import { Unavailable } from "./unavailable.ts";

/** What one API holds of a table. All its windows there refer to it, so that none of them keeps a text of its own. */
export interface ApiShare {
  /** Undefined: of the windows that name no API. Together they count as one. */
  readonly apiId: string | undefined;
  readonly places: Places;
  held: number;
}

/**
 * The places of a bounded table, and how many of them each API holds. An API may take every free place until the table is
 * 90 % full. From then on only APIs that hold less than a tenth of it get new ones, so one API alone cannot lock the
 * others out.
 */
export class Places {
  readonly #max: number;
  readonly #shares = new Map<string | undefined, ApiShare>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a place for the API; undefined: there is none for it. */
  take(apiId: string | undefined): ApiShare | undefined {
    // In whole numbers: a tenth of three is no exact fraction.
    const isScarce = 10 * this.#taken >= 9 * this.#max;
    if (isScarce && 10 * (this.#shares.get(apiId)?.held ?? 0) >= this.#max) return undefined;
    return this.restore(apiId);
  }

  /** Takes a place for a window that had one before, however many its API holds; undefined: all are taken. */
  restore(apiId: string | undefined): ApiShare | undefined {
    if (this.#taken >= this.#max) return undefined;
    const share = this.#shares.get(apiId) ?? { apiId, places: this, held: 0 };
    this.#shares.set(apiId, share);
    share.held++;
    this.#taken++;
    return share;
  }

  /** Gives one place of the API back. */
  release(share: ApiShare): void {
    share.held--;
    this.#taken--;
    if (share.held === 0) this.#shares.delete(share.apiId);
  }
}

/** The places of a table of windows. Strangers choose free-standing subjects, so these have places of their own. */
export class WindowPlaces {
  readonly #ofHolders: Places;
  readonly #ofFreeStanding: Places;

  constructor(placesMax: number, freeStandingMax: number) {
    this.#ofHolders = new Places(placesMax);
    this.#ofFreeStanding = new Places(freeStandingMax);
  }

  for(subject: string): Places {
    return isFreeStanding(subject) ? this.#ofFreeStanding : this.#ofHolders;
  }
}

export function noWindowFor(apiId: string | undefined): Unavailable {
  const whom = apiId === undefined ? "a limit without an API" : `the API ${JSON.stringify(apiId)}`;
  return new Unavailable(`no rate-limit window is free for ${whom}`);
}
