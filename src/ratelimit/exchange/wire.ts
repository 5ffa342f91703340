import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  PermitAnswerSchema,
  PermitAskSchema,
  WindowAnswer,
  WindowAnswerSchema,
  WindowReports,
  WindowReportsSchema,
  PermitAnswer as WireAnswer,
  PermitAsk as WireAsk,
} from "../../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import type { PermitAsk } from "../../domain/permit-window.ts";
import type { HubAnswer, KeyedReport } from "../local/window-hub.ts";
import { notExecuted, type PermitAnswer } from "./permit-channel.ts";

/* What goes over the internal streams, to and from the domain's own values. */

export function toWireAsk(id: number, keyId: string, ask: PermitAsk): MessageInitShape<typeof PermitAskSchema> {
  const { wantMin, wantMax, gen, returned, spent } = ask;
  return { id, keyId, wantMin, wantMax, gen, returned, spent };
}

/** Throws on numbers that no replica of ours sends: believed, they could make permits out of nothing. */
export function fromWireAsk({ wantMin, wantMax, gen, returned, spent }: WireAsk): PermitAsk {
  const counts = [wantMin, wantMax - wantMin, gen, returned, spent];
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0)) throw new RangeError("an impossible ask");
  return { wantMin, wantMax, gen, returned, spent, holders: 1 };
}

export function toWireAnswer(id: number, result: PermitAnswer): MessageInitShape<typeof PermitAnswerSchema> {
  switch (result.outcome) {
    case "settled": {
      const { outcome: _, ...value } = result;
      return { id, outcome: { case: "grant", value } };
    }
    case "missing":
      return { id, outcome: { case: "missing", value: {} } };
    case "failed":
      return { id, outcome: { case: "unknown", value: {} } };
    case "notExecuted":
      return { id, outcome: { case: "notExecuted", value: {} } };
  }
}

export function fromWireAnswer({ outcome }: WireAnswer): PermitAnswer {
  switch (outcome.case) {
    case "grant": {
      const { gen, granted, left, outstanding, contended, limit } = outcome.value;
      const { endsInMs, endsAtMs, durationMs, clockBehind } = outcome.value;
      const time = { endsInMs, endsAtMs, durationMs, clockBehind };
      return { outcome: "settled", gen, granted, left, outstanding, ...time, contended, limit };
    }
    case "missing":
      return { outcome: "missing" };
    case "notExecuted":
      return notExecuted;
    default:
      return { outcome: "failed", reason: "the coordinator does not know what became of it" };
  }
}

export function toWireReports(
  id: number,
  reports: readonly KeyedReport[],
): MessageInitShape<typeof WindowReportsSchema> {
  return {
    id,
    reports: reports.map(({ keyId, report: { previousGen, ...report } }) => ({ keyId, ...report, over: previousGen })),
  };
}

export function fromWireReports({ reports }: WindowReports): KeyedReport[] {
  return reports.map(({ keyId, replica, gen, count, endsInMs, durationMs, over }) => {
    const report = { replica, gen, count, endsInMs, durationMs, previousGen: over };
    // A window without an end would be kept for ever.
    const isPossible = [count, endsInMs, durationMs].every((number) => Number.isFinite(number) && number >= 0);
    if (!isPossible) throw new RangeError("an impossible report");
    return { keyId, report };
  });
}

export function toWireNews(id: number, { news, epoch }: HubAnswer): MessageInitShape<typeof WindowAnswerSchema> {
  // Undefined never comes from a coordinator's own hub: it merges every report or none.
  return { id, epoch, news: news.map((each) => ({ ...each })) };
}

export function fromWireNews({ epoch, news }: WindowAnswer): HubAnswer {
  return {
    epoch,
    news: news.map(({ gen, endsInMs, others, replicas, counted }) => ({ gen, endsInMs, others, replicas, counted })),
  };
}
