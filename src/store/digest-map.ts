/** About the size of one part. A growing Map copies itself and blocks: 40 µs for this many entries, 100 ms for a million. */
const partSize = 1024;
const partsMax = 4096;

/**
 * A bounded map with SHA-256 digests in base64url as keys. It consists of many small maps, so that no step takes long.
 * When it is full, the oldest entry of one part is evicted. Digests are evenly spread, so that is about the oldest of all.
 */
export class DigestMap<Value> {
  readonly #sizeMax: number;
  readonly #parts: readonly Map<string, Value>[];
  readonly #mask: number;
  #size = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
    const parts = 2 ** Math.floor(Math.log2(Math.min(partsMax, Math.max(1, sizeMax / partSize))));
    this.#parts = Array.from({ length: parts }, () => new Map());
    this.#mask = parts - 1;
  }

  get size(): number {
    return this.#size;
  }

  get(digest: string): Value | undefined {
    return this.#partOf(digest).get(digest);
  }

  /** A value that is set again becomes the newest. */
  set(digest: string, value: Value): void {
    const part = this.#partOf(digest);
    const sizeBefore = part.size;
    part.set(digest, value);
    if (part.size === sizeBefore) {
      // It was there, in its old place. Most are new: deleting first would search for each of those twice.
      part.delete(digest);
      part.set(digest, value);
      return;
    }
    if (++this.#size <= this.#sizeMax) return;
    for (const oldest of part.keys()) {
      part.delete(oldest);
      this.#size--;
      break;
    }
  }

  delete(digest: string): void {
    if (this.#partOf(digest).delete(digest)) this.#size--;
  }

  clear(): void {
    for (const part of this.#parts) part.clear();
    this.#size = 0;
  }

  #partOf(digest: string): Map<string, Value> {
    return this.#parts[twelveBitsOf(digest) & this.#mask] as Map<string, Value>;
  }
}

/** Evenly distributed bits: those of the first two characters. */
export function twelveBitsOf(digest: string): number {
  return ((sixBits[digest.charCodeAt(0)] as number) << 6) | (sixBits[digest.charCodeAt(1)] as number);
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const sixBits = new Uint8Array(128);
for (let i = 0; i < alphabet.length; i++) sixBits[alphabet.charCodeAt(i)] = i;
