import { SeededRandom } from "../../domain/seeded-random.ts";
import { compareReaders } from "./compare-readers.ts";
import { mutateRequest } from "./mutate-request.ts";
import type { ReadRequest } from "./our-reader.ts";

export interface Hunt {
  readonly inputCount: number;
  /** Requests that the reader took. */
  readonly takenCount: number;
  readonly finding: { readonly text: string; readonly bytes: Buffer } | undefined;
}

const keptMax = 1000;
const yieldEvery = 200;

/** Compares a reader with llhttp on changed requests until they disagree, or until one of the bounds is reached. */
export async function hunt(
  corpus: readonly Buffer[],
  read: ReadRequest,
  bounds: { readonly seed: number; readonly inputsMax: number; readonly untilMs: number },
): Promise<Hunt> {
  const random = new SeededRandom(bounds.seed);
  // Changed requests that the reader still takes are changed again, so that several oddities come together.
  const kept: Buffer[] = [];
  let takenCount = 0;
  for (let inputCount = 1; ; inputCount++) {
    const parent = random.pick(kept.length > 0 && random.chance(0.3) ? kept : corpus);
    const bytes = mutateRequest(parent, corpus, random);
    const compared = compareReaders(bytes, read);
    takenCount += compared.takenCount;
    if (compared.finding !== undefined) {
      const smallest = shrink(bytes, (candidate) => compareReaders(candidate, read).finding !== undefined);
      const text = compareReaders(smallest, read).finding as string;
      return { inputCount, takenCount, finding: { text, bytes: smallest } };
    }
    if (compared.takenCount > 0 && bytes.length < 2000) {
      if (kept.length < keptMax) kept.push(bytes);
      else kept[random.integer(0, keptMax - 1)] = bytes;
    }
    if (inputCount >= bounds.inputsMax || (inputCount % 64 === 0 && performance.now() >= bounds.untilMs)) {
      return { inputCount, takenCount, finding: undefined };
    }
    // Node frees parsers and requests between turns only.
    if (inputCount % yieldEvery === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Leaves out ever smaller pieces, as long as it stays a finding. */
function shrink(bytes: Buffer, isFinding: (candidate: Buffer) => boolean): Buffer {
  let smallest = bytes;
  for (let size = bytes.length >> 1; size >= 1; size >>= 1) {
    for (let at = 0; at + size <= smallest.length; ) {
      const candidate = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
      if (isFinding(candidate)) smallest = candidate;
      else at += size;
    }
  }
  return smallest;
}
