import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AnswerSchema,
  KeySchema,
  LinkResponseSchema,
  ManagementAnswerSchema,
  OwnerSchema,
} from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Answered } from "../wire.ts";

type Response = MessageInitShape<typeof LinkResponseSchema>;
type Answer = MessageInitShape<typeof AnswerSchema>;

/** Answers waiting to be sent to one edge. An edge that does not take them is cut off. */
const unsentMax = 100_000;
/** Calls of one edge without an answer. An edge has far fewer. */
const askedMax = 200_000;
/** One message is not much larger: an edge refuses eight times as much. */
const messageBytesMax = 1024 * 1024;
/** A longer answer is sent in pieces of this size, one with each message: charges and heartbeats do not wait for all of it. */
const pieceBytes = 64 * 1024;
/** Of such answers, in all. An edge that does not take them is cut off. */
const longBytesMax = 64 * 1024 * 1024;

/** What waits to be sent to one edge, and whether the stream is to end. */
export class Outbox {
  readonly recalls = new Set<string>();
  failure: unknown;
  #isClosed = false;
  #isBeatDue = false;
  /** Calls without an answer. */
  #asked = 0;
  #answers: Answer[] = [];
  /** Answers that are sent in pieces. They take turns. */
  readonly #long: LongAnswer[] = [];
  #longBytes = 0;
  #wake: (() => void) | undefined;

  /** The edge has ended its stream, and has all its answers. */
  get isFinished(): boolean {
    return this.#isClosed && this.#asked === 0 && this.#isEmpty;
  }

  expectAnswer(): void {
    this.#asked++;
    if (this.#asked > askedMax) this.close(new Error("the edge asks too much"));
  }

  answer(id: number, answer: Answered): void {
    this.#asked--;
    const message =
      answer.case === "management" && answer.value?.result?.case === "message" && answer.value.result.value;
    if (message && message.length > pieceBytes) {
      this.#long.push({ id, answer: answer.value ?? {}, message });
      this.#longBytes += message.length;
    } else this.#answers.push({ id, answer });
    if (this.#answers.length > unsentMax || this.#longBytes > longBytesMax)
      this.close(new Error("the edge does not take its answers"));
    this.wake();
  }

  beat(): void {
    this.#isBeatDue = true;
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  close(failure?: unknown): void {
    this.#isClosed = true;
    this.failure ??= failure;
    this.wake();
  }

  /** Resolves when there is something to send or to end. */
  async filled(): Promise<void> {
    const isIdle = this.#isEmpty && !this.#isBeatDue && !this.isFinished && this.failure === undefined;
    if (isIdle) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
  }

  /** The next message: all that waits, or as much as fits. */
  take(): Response {
    let count = 0;
    for (let bytes = 0; count < this.#answers.length && bytes < messageBytesMax; count++) {
      bytes += bytesOf(this.#answers[count] as Answer);
    }
    const response = { answers: [...this.#answers.splice(0, count), ...this.#takePiece()], recalls: [...this.recalls] };
    this.recalls.clear();
    this.#isBeatDue = false;
    return response;
  }

  #takePiece(): Answer[] {
    const long = this.#long.shift();
    if (long === undefined) return [];
    const { id, answer, message } = long;
    const piece = message.subarray(0, pieceBytes);
    this.#longBytes -= piece.length;
    if (piece.length === message.length) {
      return [{ id, answer: { case: "management", value: { ...answer, result: { case: "message", value: piece } } } }];
    }
    this.#long.push({ id, answer, message: message.subarray(pieceBytes) });
    return [{ id, answer: { case: "piece", value: piece } }];
  }

  get #isEmpty(): boolean {
    return this.#answers.length === 0 && this.#long.length === 0 && this.recalls.size === 0;
  }
}

interface LongAnswer {
  readonly id: number;
  readonly answer: MessageInitShape<typeof ManagementAnswerSchema>;
  /** What is left of its message. */
  readonly message: Uint8Array;
}

/** A character can take three bytes. */
function textLength({ apiId, ownerId, name, environment, metaJson }: MessageInitShape<typeof KeySchema>): number {
  return [apiId, ownerId, name, environment, metaJson].reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function ownerLength(owner: MessageInitShape<typeof OwnerSchema> | undefined): number {
  return 300 * (1 + (owner?.apiIds?.length ?? 0) + (owner?.rateLimits?.length ?? 0));
}

/** About. Only keys with metadata, merged windows and news can be large. */
function bytesOf({ answer }: Answer): number {
  switch (answer?.case) {
    case "lookup":
      return answer.value?.key ? 400 + 3 * textLength(answer.value.key) : 100;
    case "windows":
      return 50 * (answer.value?.news?.length ?? 0);
    case "owner":
      return ownerLength(answer.value?.owner);
    case "feed":
      return 300 * (answer.value?.changes?.length ?? 0);
    case "management":
      return pieceBytes + 150 * (answer.value?.changes?.length ?? 0);
    case "holders":
      return 1000 + (answer.value?.key ? 3 * textLength(answer.value.key) : 0) + ownerLength(answer.value?.owner);
    default:
      return 200;
  }
}
