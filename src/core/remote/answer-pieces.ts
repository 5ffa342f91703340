import type { ReceivedAnswer } from "../wire.ts";

/** Puts answers together that come in pieces. */
export class AnswerPieces {
  /** What has arrived of answers that are not complete yet, by call. */
  readonly #pieces = new Map<number, Uint8Array[]>();

  /** The whole answer; undefined if this was a piece of it, and others follow. */
  add(id: number, answer: ReceivedAnswer): ReceivedAnswer | undefined {
    const pieces = this.#pieces.get(id) ?? [];
    if (answer.case === "piece") {
      pieces.push(answer.value);
      this.#pieces.set(id, pieces);
      return undefined;
    }
    this.#pieces.delete(id);
    if (pieces.length > 0 && answer.case === "management" && answer.value.result.case === "message") {
      answer.value.result.value = Buffer.concat([...pieces, answer.value.result.value]);
    }
    return answer;
  }

  clear(): void {
    this.#pieces.clear();
  }
}
