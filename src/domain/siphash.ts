/*
 * SipHash-2-4 with 128 bits of output, like its authors' reference, but in 32-bit arithmetic: each 64-bit word is two
 * words here. Without the key one can neither predict a hash nor find two texts with the same hash.
 */

const keyLength = 16;
const roundsPerBlock = 2;
const roundsAtEnd = 4;
/** What tells the variant with 128 bits from the one with 64, and its second half from its first. */
const wideOutput = 0xee;
const secondHalf = 0xdd;

export class SipHash {
  /** The hash of the last text, from its first bytes to its last, each word with its lowest byte first. */
  readonly words = new Int32Array(4);
  readonly #key: readonly [number, number, number, number];

  constructor(key: Uint8Array) {
    if (key.length !== keyLength) throw new Error(`a key of SipHash has ${keyLength} bytes`);
    const view = new DataView(key.buffer, key.byteOffset, keyLength);
    this.#key = [view.getInt32(0, true), view.getInt32(4, true), view.getInt32(8, true), view.getInt32(12, true)];
  }

  /**
   * Leaves the text's hash in `words`. False, and no hash of it, for a text with a character that is more than a byte.
   * All in one function, because the state stays in registers only there: with the rounds apart it takes half as long again.
   */
  hash(text: string): boolean {
    const { words } = this;
    const key = this.#key;
    let low0 = key[0] ^ 0x70736575;
    let high0 = key[1] ^ 0x736f6d65;
    let low1 = key[2] ^ 0x6e646f6d ^ wideOutput;
    let high1 = key[3] ^ 0x646f7261;
    let low2 = key[0] ^ 0x6e657261;
    let high2 = key[1] ^ 0x6c796765;
    let low3 = key[2] ^ 0x79746573;
    let high3 = key[3] ^ 0x74656462;
    let rotated = 0;
    let allBits = 0;
    const { length } = text;
    const lastBlock = length >>> 3;
    const lastStep = lastBlock + 2;

    for (let step = 0; step <= lastStep; step++) {
      let low = 0;
      let high = 0;
      let rounds = roundsPerBlock;
      const at = step << 3;
      if (step < lastBlock) {
        const a = text.charCodeAt(at);
        const b = text.charCodeAt(at + 1);
        const c = text.charCodeAt(at + 2);
        const d = text.charCodeAt(at + 3);
        const e = text.charCodeAt(at + 4);
        const f = text.charCodeAt(at + 5);
        const g = text.charCodeAt(at + 6);
        const h = text.charCodeAt(at + 7);
        allBits |= a | b | c | d | e | f | g | h;
        low = a | (b << 8) | (c << 16) | (d << 24);
        high = e | (f << 8) | (g << 16) | (h << 24);
      } else if (step === lastBlock) {
        high = length << 24;
        for (let i = at; i < length; i++) {
          const unit = text.charCodeAt(i);
          allBits |= unit;
          if (i & 4) high |= unit << ((i & 3) << 3);
          else low |= unit << ((i & 3) << 3);
        }
      } else {
        rounds = roundsAtEnd;
        if (step < lastStep) low2 ^= wideOutput;
        else {
          words[0] = low0 ^ low1 ^ low2 ^ low3;
          words[1] = high0 ^ high1 ^ high2 ^ high3;
          low1 ^= secondHalf;
        }
      }

      low3 ^= low;
      high3 ^= high;
      for (let round = 0; round < rounds; round++) {
        high0 = (high0 + high1 + carryOf(low0, low1)) | 0;
        low0 = (low0 + low1) | 0;
        rotated = (low1 << 13) | (high1 >>> 19);
        high1 = ((high1 << 13) | (low1 >>> 19)) ^ high0;
        low1 = rotated ^ low0;
        rotated = low0;
        low0 = high0;
        high0 = rotated;
        high2 = (high2 + high3 + carryOf(low2, low3)) | 0;
        low2 = (low2 + low3) | 0;
        rotated = (low3 << 16) | (high3 >>> 16);
        high3 = ((high3 << 16) | (low3 >>> 16)) ^ high2;
        low3 = rotated ^ low2;
        high0 = (high0 + high3 + carryOf(low0, low3)) | 0;
        low0 = (low0 + low3) | 0;
        rotated = (low3 << 21) | (high3 >>> 11);
        high3 = ((high3 << 21) | (low3 >>> 11)) ^ high0;
        low3 = rotated ^ low0;
        high2 = (high2 + high1 + carryOf(low2, low1)) | 0;
        low2 = (low2 + low1) | 0;
        rotated = (low1 << 17) | (high1 >>> 15);
        high1 = ((high1 << 17) | (low1 >>> 15)) ^ high2;
        low1 = rotated ^ low2;
        rotated = low2;
        low2 = high2;
        high2 = rotated;
      }
      low0 ^= low;
      high0 ^= high;
    }
    words[2] = low0 ^ low1 ^ low2 ^ low3;
    words[3] = high0 ^ high1 ^ high2 ^ high3;
    return allBits <= 0xff;
  }
}

/** What the sum of two words has beyond them. Carries are as good as chance, and a branch on chance costs more than this. */
function carryOf(a: number, b: number): number {
  return ((a & b) | ((a | b) & ~(a + b))) >>> 31;
}
