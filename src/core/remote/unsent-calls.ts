import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallSchema } from "../../../gen/latchkey/core/v2/core_pb.js";
import type { Question, WireCharge } from "../wire.ts";
import { toWireCharges } from "../wire-charges.ts";

/** The calls that wait for the end of the turn, or for room in the stream. */
export interface Unsent {
  readonly calls: UnsentCall[];
  readonly seenTimeMs: number;
  readonly seenAgeMs: number;
}

export interface UnsentCall {
  readonly id: number;
  readonly question: Question;
  readonly isWanted: (() => boolean) | undefined;
}

/** Calls as a message carries them: charges as columns. */
export function toWireCalls(unsent: readonly Pick<UnsentCall, "id" | "question">[]) {
  const calls: MessageInitShape<typeof CallSchema>[] = [];
  const charges: { readonly id: number; readonly charge: WireCharge }[] = [];
  for (const { id, question } of unsent) {
    if (question.case === "charge") charges.push({ id, charge: question.value });
    else calls.push({ id, question });
  }
  return charges.length === 0 ? { calls } : { calls, charges: toWireCharges(charges) };
}
