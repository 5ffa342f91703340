import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AnswerSchema,
  ChangeSchema,
  LinkResponseSchema,
  ManagementAnswerSchema,
} from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Change } from "../../store/changes.ts";
import type { Answered } from "../wire.ts";
import { type SettledCall, toWireSettled } from "../wire-charges.ts";
import { toWireChange } from "../wire-feed.ts";
import { bytesOf } from "../wire-size.ts";

type Response = MessageInitShape<typeof LinkResponseSchema>;
type Answer = MessageInitShape<typeof AnswerSchema>;

/** Answers waiting to be sent to one edge. An edge that does not take them is cut off. */
const unsentMax = 100_000;
/** Calls of one edge without an answer. An edge has far fewer. */
const askedMax = 200_000;
/** One message is not much larger, with up to 1.6 MB of settled charges: an edge refuses eight times as much. */
const messageBytesMax = 1024 * 1024;
/** A longer answer is sent in pieces of this size, one with each message: charges and heartbeats do not wait for all of it. */
const pieceBytes = 64 * 1024;
/** The most bytes of such answers that may wait. An edge that does not take them is cut off. */
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
  #settled: SettledCall[] = [];
  /** Answers that are sent in pieces. They take turns. */
  readonly #long: LongAnswer[] = [];
  #longBytes = 0;
  #changes: MessageInitShape<typeof ChangeSchema>[] = [];
  /** How many changes were announced so far. */
  #changesNumber = 0;
  /** Announced changes that the front has not acted on yet, the oldest first. */
  readonly #unseen: { readonly number: number; readonly onSeen: () => void }[] = [];
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
    } else if (answer.case === "charge") this.#settled.push({ id, settled: answer.value });
    else this.#answers.push({ id, answer });
    if (this.#answers.length + this.#settled.length > unsentMax || this.#longBytes > longBytesMax)
      this.close(new Error("the edge does not take its answers"));
    this.wake();
  }

  /** Resolves when the front has acted on the change, or has gone. */
  announce(change: Change): Promise<void> {
    this.#changes.push(toWireChange(change));
    const number = ++this.#changesNumber;
    if (this.#changes.length > unsentMax) this.close(new Error("the edge does not take its changes"));
    this.wake();
    return new Promise((onSeen) => this.#unseen.push({ number, onSeen }));
  }

  /** The front has acted on all changes up to this number. */
  onChangesSeen(number: number): void {
    while (this.#unseen[0] !== undefined && this.#unseen[0].number <= number) this.#unseen.shift()?.onSeen();
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
      bytes += bytesOf(this.#answers[count]?.answer);
    }
    const answers = [...this.#answers.splice(0, count), ...this.#takePiece()];
    const changes = this.#changes;
    const settled = this.#settled.length > 0 && { settled: toWireSettled(this.#settled) };
    const response = { answers, ...settled, recalls: [...this.recalls], changes, changesNumber: this.#changesNumber };
    this.recalls.clear();
    this.#settled = [];
    this.#changes = [];
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
    const isSent = this.#answers.length === 0 && this.#settled.length === 0 && this.#long.length === 0;
    return isSent && this.recalls.size === 0 && this.#changes.length === 0;
  }
}

interface LongAnswer {
  readonly id: number;
  readonly answer: MessageInitShape<typeof ManagementAnswerSchema>;
  /** What is left of its message. */
  readonly message: Uint8Array;
}
