import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ExchangeRequest,
  ExchangeResponseSchema,
  PermitAnswerSchema,
  WindowAnswerSchema,
} from "../../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import type { Clock } from "../../ambient/clock.ts";
import type { PermitAnswer } from "../exchange/permit-channel.ts";
import { fromWireAsk, fromWireReports, toWireAnswer, toWireNews } from "../exchange/wire.ts";
import type { WindowHub } from "../local/window-hub.ts";
import { AskAge } from "./ask-age.ts";
import type { Coordinator } from "./coordinator.ts";
import type { ReplicaStreams } from "./replica-streams.ts";

type Response = MessageInitShape<typeof ExchangeResponseSchema>;
type Answer = MessageInitShape<typeof PermitAnswerSchema>;
type News = MessageInitShape<typeof WindowAnswerSchema>;

export interface ServeReplicaDeps {
  readonly coordinator: Coordinator;
  readonly hub: WindowHub;
  readonly streams: ReplicaStreams;
  readonly clock: Clock;
  readonly isLedgerAway: () => boolean;
}

/** Answers waiting to be sent to one replica. A replica that does not take them is cut off. */
const unsentMax = 100_000;
/** A replica that hears nothing for much longer takes the coordinator for silent. */
const heartbeatMs = 50;

/**
 * Serves one replica's stream until it ends. When the stream takes the next message, all answers that are ready go into
 * it, so that many answers share one message. A message goes out with every heartbeat, also without answers; a replica
 * that takes none gets one when it does.
 */
export async function* serveReplica(
  requests: AsyncIterable<ExchangeRequest>,
  { coordinator, hub, streams, clock, isLedgerAway }: ServeReplicaDeps,
): AsyncGenerator<Response> {
  const outbox = new Outbox();
  const channel = coordinator.join((keyId) => outbox.recalls.add(keyId) && outbox.wake());
  const leave = streams.enter();
  const heartbeat = setInterval(() => outbox.beat(), heartbeatMs).unref();
  const age = new AskAge();
  const read = readAll();
  try {
    // At once: it says that the coordinator is there.
    for (outbox.beat(); ; await outbox.filled()) {
      if (outbox.failure !== undefined) throw outbox.failure;
      if (outbox.isFinished) return;
      const state = { ledgerAway: isLedgerAway(), stopping: streams.isStopping };
      yield { ...outbox.take(), ...state, timeMs: clock.monotonicMs() };
    }
  } finally {
    clearInterval(heartbeat);
    channel.close();
    leave();
    // The outbox has already got this error.
    read.catch(() => {});
  }

  async function readAll(): Promise<void> {
    try {
      for await (const request of requests) {
        const expiresAtMs = age.expiresAtMs(request, clock.monotonicMs());
        for (const ask of request.asks) {
          const asked = channel.exchange(ask.keyId, fromWireAsk(ask), { expiresAtMs });
          outbox.expectAnswer();
          const answer = (result: PermitAnswer) => outbox.answer(toWireAnswer(ask.id, result));
          asked.then(answer, () => answer({ outcome: "failed", reason: "" }));
        }
        for (const each of request.reports) outbox.tell(toWireNews(each.id, await hub.exchange(fromWireReports(each))));
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
  #isClosed = false;
  #isBeatDue = false;
  /** Asks without an answer. */
  #asked = 0;
  #answers: Answer[] = [];
  #news: News[] = [];
  #wake: (() => void) | undefined;

  /** The replica has ended its stream, and has all its answers. */
  get isFinished(): boolean {
    return this.#isClosed && this.#asked === 0 && this.#isEmpty;
  }

  expectAnswer(): void {
    this.#asked++;
  }

  answer(answer: Answer): void {
    this.#asked--;
    this.#answers.push(answer);
    if (this.#answers.length > unsentMax) this.close(new Error("the replica does not take its answers"));
    this.wake();
  }

  tell(news: News): void {
    this.#news.push(news);
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

  take(): Response {
    const response = { answers: this.#answers, news: this.#news, recalls: [...this.recalls] };
    this.#answers = [];
    this.#news = [];
    this.recalls.clear();
    this.#isBeatDue = false;
    return response;
  }

  get #isEmpty(): boolean {
    return this.#answers.length === 0 && this.#news.length === 0 && this.recalls.size === 0;
  }
}
