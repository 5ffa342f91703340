import type { MessageInitShape } from "@bufbuild/protobuf";
import type { LinkRequest, LinkResponseSchema } from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Ambient } from "../../ambient/ambient.ts";
import { createPacedWarning } from "../../ambient/paced-lines.ts";
import { Forbidden, RootKeyRefused } from "../../domain/root-key.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Coordinator } from "../../ratelimit/coordinator/coordinator.ts";
import { InvalidMessage, type ReceivedCall, toWireFailure } from "../wire.ts";
import { fromWireCharges } from "../wire-charges.ts";
import { answerCall, type ServedCore } from "./answer-call.ts";
import { AskAge } from "./ask-age.ts";
import type { FrontStreams } from "./front-streams.ts";
import { Outbox } from "./outbox.ts";

export interface ServeFrontDeps extends Pick<Ambient, "clock" | "log"> {
  readonly core: ServedCore;
  readonly coordinator: Coordinator;
  readonly streams: FrontStreams;
  readonly isLedgerAway: () => boolean;
  /** The round trip from here to the ledger. */
  readonly ledgerPathMs: () => number;
  /** How much later than others a call may come and still be carried out: its front may have given it up. */
  readonly lateMs: number;
}

const pathMinMs = 0.001;
/** An edge that receives nothing for much longer takes the coordinator for silent. */
const heartbeatMs = 50;

/**
 * Serves one edge's stream until it ends. When the stream takes the next message, all answers that are ready go into it,
 * so that many answers share one message. A message goes out with every heartbeat, also without answers; an edge that
 * takes none gets one when it does.
 */
export async function* serveFront(
  requests: AsyncIterable<LinkRequest>,
  { core, coordinator, streams, clock, log, isLedgerAway, ledgerPathMs, lateMs }: ServeFrontDeps,
): AsyncGenerator<MessageInitShape<typeof LinkResponseSchema>> {
  const outbox = new Outbox();
  const permits = coordinator.join((subject) => outbox.recalls.add(subject) && outbox.wake());
  const leave = streams.enter(outbox);
  const heartbeat = setInterval(() => outbox.beat(), heartbeatMs).unref();
  const age = new AskAge(lateMs);
  const warnInvalid = createPacedWarning({ clock, log }, "an edge has sent what this version does not take");
  const read = readAll();
  try {
    // Immediately: it says that the coordinator is there.
    for (outbox.beat(); ; await outbox.filled()) {
      if (outbox.failure !== undefined) throw outbox.failure;
      if (outbox.isFinished) return;
      const state = { ledgerAway: isLedgerAway(), stopping: streams.isStopping };
      // 0 says that it is not known yet.
      const pathMs = age.roundTripMs === undefined ? 0 : Math.max(pathMinMs, age.roundTripMs + ledgerPathMs());
      yield { ...outbox.take(), ...state, pathMs, timeMs: clock.monotonicMs() };
    }
  } finally {
    clearInterval(heartbeat);
    permits.close();
    leave();
    outbox.onChangesSeen(Number.POSITIVE_INFINITY);
    // The outbox has already got this error.
    read.catch(() => {});
  }

  async function readAll(): Promise<void> {
    try {
      for await (const request of requests) {
        const nowMs = clock.monotonicMs();
        const expiresAtMs = age.expiresAtMs(request, nowMs);
        outbox.onChangesSeen(request.changesSeen);
        for (const call of [...request.calls, ...fromWireCharges(request.charges)]) answer(call, expiresAtMs, nowMs);
      }
      outbox.close();
    } catch (error) {
      outbox.close(error);
    }
  }

  function answer({ id, question }: ReceivedCall, expiresAtMs: number, nowMs: number): void {
    outbox.expectAnswer();
    answerCall(question, core, { permits, expiresAtMs, lateMs, nowMs }).then(
      (answered) => outbox.answer(id, answered),
      (error: unknown) => {
        // That call alone fails: an edge of another version may know more than this coordinator.
        if (error instanceof InvalidMessage) warnInvalid(() => ({ kind: question.case, reason: error.message }));
        else if (!(error instanceof Unavailable || error instanceof RootKeyRefused || error instanceof Forbidden)) {
          log.error("a call of an edge failed", error, { kind: question.case });
        }
        outbox.answer(id, toWireFailure(error));
      },
    );
  }
}
