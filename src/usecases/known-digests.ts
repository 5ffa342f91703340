import { sha256 } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import { isWellFormedKey, longestKey } from "../domain/key-format.ts";
import { SipHash } from "../domain/siphash.ts";

export type TextHash = Pick<SipHash, "hash" | "words">;

const slotsMin = 2 ** 10;
const slotsMax = 2 ** 21;
const wordsPerSlot = 4;

/**
 * The digests of texts that could be keys. Those of texts that come again are remembered, which saves checking and
 * digesting them. What a text is known by is a keyed hash, so that no secret stays in memory (docs/adr/0010). As a
 * digest depends on nothing but its text, there is never one to forget.
 */
export class KnownDigests {
  readonly #hasher: TextHash;
  readonly #mask: number;
  readonly #tags: Int32Array;
  readonly #digests: (string | undefined)[];

  /** The slots must be a power of two. */
  constructor(hasher: TextHash, slots: number) {
    this.#hasher = hasher;
    this.#mask = slots - 1;
    this.#tags = new Int32Array(slots * wordsPerSlot);
    this.#digests = new Array<string | undefined>(slots).fill(undefined);
  }

  /** With room for twice as many texts as there are keys: they find their slots by chance, and push each other out. */
  static forKeys(keysMax: number, random: Random): KnownDigests {
    const slots = 2 ** Math.ceil(Math.log2(Math.min(slotsMax, Math.max(slotsMin, 2 * keysMax))));
    return new KnownDigests(new SipHash(random.bytes(16)), slots);
  }

  /** Undefined for a text that cannot be a key: such a text was never issued, and pushes out none that was. */
  digestOf(text: string): string | undefined {
    // Neither can be a key. Hashing the one would take as long as its sender likes; the other has no hash of its own.
    if (text.length > longestKey || !this.#hasher.hash(text)) return undefined;
    const { words } = this.#hasher;
    const slot = (words[0] as number) & this.#mask;
    const known = this.#digests[slot];
    if (known !== undefined && this.#isTag(slot, words)) return known;

    if (!isWellFormedKey(text)) return undefined;
    const digest = sha256(text);
    this.#tags.set(words, slot * wordsPerSlot);
    this.#digests[slot] = digest;
    return digest;
  }

  #isTag(slot: number, words: Int32Array): boolean {
    const tags = this.#tags;
    const at = slot * wordsPerSlot;
    return tags[at] === words[0] && tags[at + 1] === words[1] && tags[at + 2] === words[2] && tags[at + 3] === words[3];
  }
}
