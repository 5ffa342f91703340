import type { RowGuard } from "./row-guard.ts";
import type { SavedWindow } from "./saved-window.ts";
import type { WindowNews, WindowReport } from "./shared-window.ts";
import { type ApiShare, WindowPlaces } from "./window-places.ts";
import { bytesOfRows, WindowRows } from "./window-rows.ts";

export interface WindowTableOptions {
  /** Slots for free-standing subjects, besides those for all others. */
  readonly freeStandingMax?: number | undefined;
  readonly nextGen?: (() => number) | undefined;
  /** Rows that other threads count in too, and what keeps them apart. */
  readonly shared?: { readonly memory: ArrayBufferLike; readonly guard: RowGuard } | undefined;
}

/** Which row counts for which subject: a bounded table, one row per subject. One thread owns it; other threads count in the rows. */
export class WindowTable {
  readonly slotsMax: number;
  readonly rows: WindowRows;
  /** Undefined where one thread counts alone. */
  readonly guard: RowGuard | undefined;
  readonly #slots = new Map<string, number>();
  readonly #ids: string[] = [];
  /** What the API that has the slot holds of this table; of slots in use. */
  readonly #shares: ApiShare[] = [];
  readonly #free: number[] = [];
  readonly #places: WindowPlaces;
  #hand = 0;

  constructor(slotsMax: number, { nextGen, shared, freeStandingMax = 0 }: WindowTableOptions = {}) {
    this.slotsMax = slotsMax + freeStandingMax;
    this.#places = new WindowPlaces(slotsMax, freeStandingMax);
    this.rows = new WindowRows(shared?.memory ?? new ArrayBuffer(bytesOfRows(this.slotsMax)), nextGen);
    this.guard = shared?.guard;
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

  /** The claim under which the row is its subject's. */
  claimOf(slot: number): number {
    return this.guard === undefined ? 0 : this.guard.claimOf(slot);
  }

  idOf(slot: number): string {
    return this.#ids[slot] as string;
  }

  /** The API that the slot counts for: the one that was named when the subject got it. */
  apiIdOf(slot: number): string | undefined {
    return this.#shares[slot]?.apiId;
  }

  /** What to tell the others; undefined when no window is open. */
  report(slot: number, replica: string, nowMs: number): WindowReport | undefined {
    return this.#holding(slot, () => this.rows.report(slot, replica, nowMs));
  }

  /** Takes in the answer to a report. */
  learn(slot: number, report: WindowReport, news: WindowNews, sentAtMs: number, nowMs: number): void {
    this.#holding(slot, () => this.rows.learn(slot, report, news, sentAtMs, nowMs));
  }

  /** Frees slots whose windows are over, looking at so many. */
  sweep(nowMs: number, slotsToCheck: number): void {
    for (let i = Math.min(slotsToCheck, this.#ids.length); i > 0; i--) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#ids.length;
      if (this.#ids[slot] === "" || !this.#giveUpIfOver(slot, nowMs)) continue;
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
      const saved = this.#holding(slot, () =>
        this.rows.isOpen(slot, nowMs) ? this.rows.save(slot, subject, nowMs) : undefined,
      );
      if (saved !== undefined) yield { ...saved, apiId: this.apiIdOf(slot) };
    }
  }

  /** Puts a saved window back. False when the table is full. */
  restore(saved: SavedWindow, nowMs: number): boolean {
    const { subject, apiId } = saved;
    const slot = this.#slots.get(subject) ?? this.#claim(subject, this.#places.for(subject).restore(apiId));
    if (slot === undefined) return false;
    this.#holding(slot, () => this.rows.restore(slot, saved, nowMs));
    return true;
  }

  #claim(subject: string, share: ApiShare | undefined): number | undefined {
    if (share === undefined) return undefined;
    const slot = this.#free.pop() ?? this.#ids.length;
    this.#ids[slot] = subject;
    this.#shares[slot] = share;
    this.#slots.set(subject, slot);
    this.#holding(slot, () => this.rows.clear(slot));
    return slot;
  }

  /** Checks and gives up in one hold: a thread that counted in between would count in a row that is given away. */
  #giveUpIfOver(slot: number, nowMs: number): boolean {
    const claim = this.claimOf(slot);
    this.guard?.hold(slot, claim);
    const isOver = !this.rows.isOpen(slot, nowMs);
    if (isOver) this.guard?.giveUp(slot, claim);
    else this.guard?.letGo(slot, claim);
    return isOver;
  }

  /** Claims are changed here only, so the row is the subject's. */
  #holding<Result>(slot: number, act: () => Result): Result {
    const claim = this.claimOf(slot);
    this.guard?.hold(slot, claim);
    try {
      return act();
    } finally {
      this.guard?.letGo(slot, claim);
    }
  }
}
