import type { WindowAnswer, WindowReports } from "../../gen/latchkey/core/v2/core_pb.js";
import { durationMaxMs, durationMinMs, limitMax } from "../domain/rate-limit.ts";
import { type HubAnswer, reportsMax, type SubjectReport } from "../ratelimit/local/window-hub.ts";
import { impossible, limitSubject, optional, text, wholeNumber } from "./checks.ts";
import type { Answered, Question } from "./wire.ts";

/* Reports of windows and their answers, to and from our own values. */

export function toWireReports(reports: readonly SubjectReport[]): Question {
  const value = {
    reports: reports.map(({ subject, apiId, report }) => ({
      subject,
      ...report,
      ...(apiId !== undefined && { apiId }),
    })),
  };
  return { case: "windows", value };
}

const genNumber = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const permits = wholeNumber(0, limitMax);
const duration = wholeNumber(durationMinMs, durationMaxMs);
/** It can be beyond the duration: that of a limit may be changed while others have a longer window open. */
const timeToEnd = wholeNumber(1, durationMaxMs);
const apiIdIfAny = optional(text);

/** Throws on what no edge of ours sends: a window would be kept forever, or a text would fill the memory. */
export function fromWireReports({ reports }: WindowReports): SubjectReport[] {
  if (reports.length > reportsMax) throw impossible("number of reports");
  return reports.map(({ subject, apiId, replica, gen, count, endsInMs, durationMs, previousGen }) => ({
    subject: limitSubject(subject, "subject"),
    apiId: apiIdIfAny(apiId, "apiId"),
    report: {
      replica: text(replica, "replica"),
      gen: genNumber(gen, "gen"),
      count: permits(count, "count"),
      endsInMs: timeToEnd(endsInMs, "endsInMs"),
      durationMs: duration(durationMs, "durationMs"),
      previousGen: genNumber(previousGen, "previousGen"),
    },
  }));
}

export function toWireWindows({ news, epoch, refusal = "" }: HubAnswer): Answered {
  const value = news.map((each) => {
    if (each === undefined) return { refused: true };
    // All others together can have let more pass than a field holds. No limit is higher.
    return { ...each, others: Math.min(each.others, limitMax) };
  });
  return { case: "windows", value: { epoch, refusal, news: value } };
}

export function fromWireWindows({ epoch, refusal, news }: WindowAnswer): HubAnswer {
  return {
    epoch,
    refusal: refusal === "" ? undefined : refusal,
    news: news.map(({ refused, gen, endsInMs, others, replicas, counted }) =>
      refused ? undefined : { gen, endsInMs, others, replicas, counted },
    ),
  };
}
