import { type ApiShare, WindowPlaces } from "./window-places.ts";
import { type SavedWindow, WindowRows } from "./window-rows.ts";

export interface WindowTableOptions {
  /** Slots for free-standing subjects, besides those for all others. */
  readonly freeStandingMax?: number | undefined;
  readonly nextGen?: (() => number) | undefined;
}

/** Which row counts for which subject: a bounded table, one row per subject. */
export class WindowTable {
  readonly slotsMax: number;
  readonly rows: WindowRows;
  readonly #slots = new Map<string, number>();
  readonly #ids: string[] = [];
  /** The share of the API that each slot counts for. Only for slots in use. */
  readonly #shares: ApiShare[] = [];
  readonly #free: number[] = [];
  readonly #places: WindowPlaces;
  #hand = 0;

  constructor(slotsMax: number, { nextGen, freeStandingMax = 0 }: WindowTableOptions = {}) {
    this.slotsMax = slotsMax + freeStandingMax;
    this.#places = new WindowPlaces(slotsMax, freeStandingMax);
    this.rows = new WindowRows(this.slotsMax, nextGen);
  }

  /** How many slots are in use. */
  get size(): number {
    return this.#slots.size;
  }

  /** The subject's slot. If it has none, a new one that counts for the API; undefined when there is none for it. */
  slotOf(subject: string, apiId?: string): number | undefined {
    return this.#slots.get(subject) ?? this.#claim(subject, this.#places.for(subject).take(apiId));
  }

  /** The slot of a subject that has one. */
  find(subject: string): number | undefined {
    return this.#slots.get(subject);
  }

  idOf(slot: number): string {
    return this.#ids[slot] as string;
  }

  /** The API that the slot counts for: the one that was named when the subject got it. */
  apiIdOf(slot: number): string | undefined {
    return this.#shares[slot]?.apiId;
  }

  /** Frees slots whose windows are over, looking at so many. */
  sweep(nowMs: number, slotsToCheck: number): void {
    for (let i = Math.min(slotsToCheck, this.#ids.length); i > 0; i--) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#ids.length;
      if (this.#ids[slot] === "" || this.rows.isOpen(slot, nowMs)) continue;
      const share = this.#shares[slot] as ApiShare;
      share.places.release(share);
      this.#slots.delete(this.#ids[slot] as string);
      this.#ids[slot] = "";
      this.#free.push(slot);
    }
  }

  slotsInUse(): Iterable<number> {
    return this.#slots.values();
  }

  /** The windows that are open, to be restored later: times are relative. */
  *openWindows(nowMs: number): Generator<SavedWindow> {
    for (const [subject, slot] of this.#slots) {
      if (!this.rows.isOpen(slot, nowMs)) continue;
      yield { ...this.rows.save(slot, subject, nowMs), apiId: this.apiIdOf(slot) };
    }
  }

  /** Puts a saved window back. False when the table is full. */
  restore(saved: SavedWindow, nowMs: number): boolean {
    const { subject, apiId } = saved;
    const slot = this.#slots.get(subject) ?? this.#claim(subject, this.#places.for(subject).restore(apiId));
    if (slot === undefined) return false;
    this.rows.restore(slot, saved, nowMs);
    return true;
  }

  #claim(subject: string, share: ApiShare | undefined): number | undefined {
    if (share === undefined) return undefined;
    const slot = this.#free.pop() ?? this.#ids.length;
    this.#ids[slot] = subject;
    this.#shares[slot] = share;
    this.#slots.set(subject, slot);
    this.rows.clear(slot);
    return slot;
  }
}
