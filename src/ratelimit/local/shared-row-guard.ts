import type { RowGuard } from "../../domain/row-guard.ts";

/** Tries before a thread gives up its processor: a row is held for less than a microsecond. */
const spins = 200;
/** Then this long between two tries: the thread that holds the row has lost its processor. */
const napMs = 0.05;
/** After so many naps, which take seconds, the row counts as held for ever. */
const napsMax = 20_000;

/**
 * Guards each row by one word: the row's claim number, and in the lowest bit whether a thread holds the row. So one
 * compare-and-swap both takes the row and checks that it still belongs to the subject.
 */
export class SharedRowGuard implements RowGuard {
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  claimOf(slot: number): number {
    return Atomics.load(this.#words, slot) & ~isHeld;
  }

  hold(slot: number, claim: number): boolean {
    for (let tries = 1; ; tries++) {
      const seen = Atomics.compareExchange(this.#words, slot, claim, claim | isHeld);
      if (seen === claim) return true;
      if (seen !== (claim | isHeld)) return false;
      if (tries % spins === 0) Atomics.wait(this.#words, slot, seen, napMs);
      if (tries > spins * napsMax) throw new Error("a rate-limit window is held for ever");
    }
  }

  letGo(slot: number, claim: number): void {
    Atomics.store(this.#words, slot, claim);
  }

  giveUp(slot: number, claim: number): void {
    Atomics.store(this.#words, slot, (claim + claimStep) | 0);
  }
}

const isHeld = 1;
const claimStep = 2;

/** What the words of so many rows take. */
export function bytesOfGuard(slotsMax: number): number {
  return slotsMax * Int32Array.BYTES_PER_ELEMENT;
}
