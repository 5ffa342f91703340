import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExchangeRequest,
  ExchangeResponseSchema,
  PermitAnswerSchema,
  WindowAnswerSchema,
} from "../../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import type { PermitResult } from "../../store/permit-ledger.ts";
import type { WindowHub } from "../local/window-hub.ts";
import type { Coordinator } from "./coordinator.ts";
import { fromWireAsk, fromWireReports, toWireAnswer, toWireNews } from "./wire.ts";

type Response = MessageInitShape<typeof ExchangeResponseSchema>;
type Answer = MessageInitShape<typeof PermitAnswerSchema>;
type News = MessageInitShape<typeof WindowAnswerSchema>;

/** Answers waiting to be sent to one replica. A replica that does not take them is cut off. */
const unsentMax = 100_000;

/**
 * Serves one replica's stream until it ends. When the stream takes the next message, all answers that are ready go into
 * it, so that many answers share one message.
 */
export async function* serveReplica(
  requests: AsyncIterable<ExchangeRequest>,
  { coordinator, hub }: { coordinator: Coordinator; hub: WindowHub },
): AsyncGenerator<Response> {
  const outbox = new Outbox();
  const channel = coordinator.join((keyId) => outbox.recalls.add(keyId) && outbox.wake());
  const read = readAll();
  try {
    // Says that the coordinator is there.
    yield {};
    for (;;) {
      await outbox.filled();
      if (outbox.failure !== undefined) throw outbox.failure;
      if (outbox.isEmpty && outbox.isClosed) return;
      yield outbox.take();
    }
  } finally {
    channel.close();
    // The outbox has already got this error.
    read.catch(() => {});
  }

  async function readAll(): Promise<void> {
    try {
      for await (const { asks, reports } of requests) {
        for (const ask of asks) {
          const answer = (result: PermitResult) => outbox.answer(toWireAnswer(ask.id, result));
          channel.exchange(ask.keyId, fromWireAsk(ask)).then(answer, () => {
            answer({ outcome: "failed", reason: "" });
          });
        }
        for (const each of reports) outbox.tell(toWireNews(each.id, await hub.exchange(fromWireReports(each))));
      }
      outbox.close();
    } catch (error) {
      outbox.close(error);
    }
  }
}

class Outbox {
  readonly recalls = new Set<string>();
  failure: unknown;
  isClosed = false;
  #answers: Answer[] = [];
  #news: News[] = [];
  #wake: (() => void) | undefined;

  get isEmpty(): boolean {
    return this.#answers.length === 0 && this.#news.length === 0 && this.recalls.size === 0;
  }

  answer(answer: Answer): void {
    this.#answers.push(answer);
    if (this.#answers.length > unsentMax) this.close(new Error("the replica does not take its answers"));
    this.wake();
  }

  tell(news: News): void {
    this.#news.push(news);
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  close(failure?: unknown): void {
    this.isClosed = true;
    this.failure ??= failure;
    this.wake();
  }

  async filled(): Promise<void> {
    if (this.isEmpty && !this.isClosed) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
  }

  take(): Response {
    const response = { answers: this.#answers, news: this.#news, recalls: [...this.recalls] };
    this.#answers = [];
    this.#news = [];
    this.recalls.clear();
    return response;
  }
}
