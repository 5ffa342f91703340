import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { noRoom } from "./api-error.ts";

export interface OpenStreamsMax {
  readonly total: number;
  readonly perConnection: number;
}

/** Limits the number of streams that need no credential and stay open as long as the client wants. */
export class OpenStreams {
  readonly #max: OpenStreamsMax;
  readonly #onRefused: () => void;
  readonly #connectionOf = new Map<ServerHttp2Stream, Http2Session>();
  readonly #perConnection = new Map<Http2Session, number>();
  /** One error for all: encoding one for each stream would cost more than the stream. */
  readonly #tooMany = noRoom("too many streams of this kind are open");
  /** One listener for all streams. */
  readonly #onClose: (this: ServerHttp2Stream) => void;

  constructor(max: OpenStreamsMax, onRefused: () => void) {
    this.#max = max;
    this.#onRefused = onRefused;
    const remove = (stream: ServerHttp2Stream) => this.#remove(stream);
    this.#onClose = function onClose() {
      remove(this);
    };
  }

  get size(): number {
    return this.#connectionOf.size;
  }

  /** Counts the stream until it closes. Throws `ApiError` if there are too many, or its client has gone. */
  enter(stream: ServerHttp2Stream): void {
    const { session } = stream;
    const ofSession = session === undefined ? 0 : (this.#perConnection.get(session) ?? 0);
    if (session === undefined || this.size >= this.#max.total || ofSession >= this.#max.perConnection) {
      this.#onRefused();
      throw this.#tooMany;
    }
    this.#connectionOf.set(stream, session);
    this.#perConnection.set(session, ofSession + 1);
    stream.on("close", this.#onClose);
  }

  #remove(stream: ServerHttp2Stream): void {
    const session = this.#connectionOf.get(stream);
    if (session === undefined) return;
    this.#connectionOf.delete(stream);
    const left = (this.#perConnection.get(session) ?? 1) - 1;
    if (left === 0) this.#perConnection.delete(session);
    else this.#perConnection.set(session, left);
  }
}
