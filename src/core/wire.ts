import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  AnswerSchema,
  CallSchema,
  LinkResponse,
  PermitAsk as WireAsk,
  Call as WireCall,
  PermitGrant as WireGrant,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { askRunsMax, type PermitAsk } from "../domain/permit-window.ts";
import { isRateLimit } from "../domain/rate-limit.ts";
import { Forbidden, RootKeyRefused } from "../domain/root-key.ts";
import { isFreeStanding } from "../domain/subject.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { notExecuted, type PermitAnswer } from "../ratelimit/permit-channel.ts";
import { type ChargeOutcome, type ChargeRun, notSettled, type SettledCharge } from "../store/usage-ledger.ts";

/* What goes over the internal streams, to and from our own values: calls in general, and permits. */

/** A charge as an edge asks for it. */
export interface WireCharge extends ChargeRun {
  readonly subject: string;
}

/** A charge as it was received: anything can be missing. */
export type ReceivedCharge = { readonly [Name in keyof Required<WireCharge>]: WireCharge[Name] | undefined };

/** A call as it is sent: one of several kinds. */
type SentQuestion = NonNullable<MessageInitShape<typeof CallSchema>["question"]>;
/** A call. Charges are sent as columns. */
export type Question =
  | Exclude<SentQuestion, { case: undefined }>
  | { readonly case: "charge"; readonly value: WireCharge };
/** A call as it was received. */
export interface ReceivedCall extends Pick<WireCall, "id"> {
  readonly question: WireCall["question"] | { readonly case: "charge"; readonly value: ReceivedCharge };
}
export type ReceivedQuestion = ReceivedCall["question"];
/** An answer. Charges that were settled are sent as columns. */
export type Answered =
  | NonNullable<MessageInitShape<typeof AnswerSchema>["answer"]>
  | { readonly case: "charge"; readonly value: SettledCharge };
/** An answer as it was received. Charges that were settled come as columns. */
export type ReceivedAnswer =
  | LinkResponse["answers"][number]["answer"]
  | { readonly case: "charge"; readonly value: SettledCharge };

type Kind = NonNullable<ReceivedAnswer["case"]>;
type ValueOf<Wanted extends Kind> = Extract<ReceivedAnswer, { case: Wanted }>["value"];

/** No root key is longer. Anyone can present a longer text to an edge, which refuses it without asking. */
export const rootKeyMax = 4096;

/** The call was not executed and never will be: it was not sent, or it was too old. It may be made again. */
export class NotExecuted extends Unavailable {
  override readonly name = "NotExecuted";
}

/** A message that no edge of this version sends. Not a `RangeError`, which an error of our own code can be too. */
export class InvalidMessage extends Error {
  override readonly name = "InvalidMessage";
}

/** The value of the answer, if it is of the kind that was asked for. Otherwise throws the error that it carries. */
export function requireAnswer<Wanted extends Kind>(received: ReceivedAnswer, kind: Wanted): ValueOf<Wanted> {
  if (received.case === kind) return received.value as ValueOf<Wanted>;
  switch (received.case) {
    case "notExecuted":
      throw new NotExecuted("the call was too old", { nothingDone: true });
    case "rootKeyRefused":
      throw new RootKeyRefused();
    case "forbidden":
      throw new Forbidden(received.value.message);
    case "unknown":
      throw new Unavailable("the coordinator does not know such a question", { nothingDone: true });
    case "failure": {
      const { reason, retryAfterMs, ofOneKey: affectsOneKeyOnly, nothingDone } = received.value;
      throw new Unavailable(reason, { retryAfterMs, affectsOneKeyOnly, nothingDone });
    }
    default:
      throw new Unavailable("the coordinator has given an answer of another kind");
  }
}

/** The error as the edge receives it. The text of an error that is not ours is only for the log of the coordinator. */
export function toWireFailure(error: unknown): Answered {
  // It was found before anything was done.
  if (error instanceof InvalidMessage) return { case: "unknown", value: {} };
  if (error instanceof RootKeyRefused) return { case: "rootKeyRefused", value: {} };
  if (error instanceof Forbidden) return { case: "forbidden", value: { message: error.message } };
  return failure(error instanceof Unavailable ? error : new Unavailable("the coordinator has failed"));
}

function failure({ message: reason, retryAfterMs, affectsOneKeyOnly: ofOneKey, nothingDone }: Unavailable): Answered {
  return { case: "failure", value: { reason, retryAfterMs, ofOneKey, nothingDone } };
}

export function toWireOutcome(outcome: ChargeOutcome): Answered {
  switch (outcome.outcome) {
    case "settled":
      return { case: "charge", value: outcome };
    case "failed":
      return toWireFailure(notSettled(outcome.reason));
    default:
      return { case: outcome.outcome, value: {} };
  }
}

export function toWireAsk(subject: string, ask: PermitAsk): Question {
  const { waiting, inAdvance, gen, returned, spent, sentRule } = ask;
  const value = { subject, waiting: [...waiting], inAdvance, gen, returned, spent };
  return { case: "permits", value: sentRule === undefined ? value : { ...value, sentRule } };
}

/** Throws on numbers that no edge of ours sends: believed, they could make permits out of nothing. */
export function fromWireAsk({ subject, waiting, inAdvance, gen, returned, spent, sentRule }: WireAsk): PermitAsk {
  const runs = waiting.map(({ cost, count }) => ({ cost, count }));
  const counts = [inAdvance, gen, returned, spent, ...runs.flatMap(({ cost, count }) => [cost - 1, count - 1])];
  const isPossible = counts.every((count) => Number.isSafeInteger(count) && count >= 0);
  if (!isPossible || runs.length > askRunsMax) throw new InvalidMessage("an impossible ask");
  const ask = { waiting: runs, inAdvance, gen, returned, spent, holders: 1 };
  // A rule sent for a key's limit would be in force instead of the stored one.
  if ((sentRule !== undefined) !== isFreeStanding(subject)) throw new InvalidMessage("an impossible ask");
  if (sentRule === undefined) return ask;
  const { limit, durationMs } = sentRule;
  if (!isRateLimit({ mode: "strict", limit, durationMs })) throw new InvalidMessage("an impossible ask");
  return { ...ask, sentRule: { limit, durationMs } };
}

export function toWirePermits(result: PermitAnswer): Answered {
  switch (result.outcome) {
    case "settled": {
      const { outcome: _, ...value } = result;
      return { case: "permits", value };
    }
    case "missing":
      return { case: "missing", value: {} };
    case "failed":
      return failure(new Unavailable(result.reason, { affectsOneKeyOnly: true }));
    case "notExecuted":
      return { case: "notExecuted", value: {} };
  }
}

export function fromWirePermits(received: ReceivedAnswer): PermitAnswer {
  switch (received.case) {
    case "permits":
      return { outcome: "settled", ...fromWireGrant(received.value) };
    case "missing":
      return { outcome: "missing" };
    case "notExecuted":
      return notExecuted;
    default:
      return { outcome: "failed", reason: "the coordinator does not know what became of it" };
  }
}

function fromWireGrant(grant: WireGrant) {
  const { gen, granted, left, outstanding, endsInMs, endsAtMs, durationMs, clockBehind, contended, limit } = grant;
  return { gen, granted, left, outstanding, endsInMs, endsAtMs, durationMs, clockBehind, contended, limit };
}
