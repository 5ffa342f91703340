import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Answer, AnswerSchema, type Call, CallSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import type { Ambient } from "../../src/ambient/ambient.ts";
import { toWireCalls } from "../../src/core/remote/unsent-calls.ts";
import { requireAnswer } from "../../src/core/wire.ts";
import {
  fromWireCarriedOut,
  fromWireManagement,
  toWireCarriedOut,
  toWireManagement,
} from "../../src/core/wire-management.ts";
import type { CarryOut } from "../../src/rpc/forwarded-calls.ts";
import { createCarryOut } from "../../src/server/served-core.ts";
import type { Management } from "../../src/store/management.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";

/** Management by a core that is reached over a link, without its sockets: every call and every answer is encoded as there. */
export function coreElsewhere(
  deps: Ambient & { readonly checkRootKey: CheckRootKey; readonly management: Management },
): { readonly manages: { readonly carryOut: CarryOut } } {
  const carryOut = createCarryOut(deps);
  return {
    manages: {
      async carryOut(call) {
        const { calls } = toWireCalls([{ id: 1, question: toWireManagement(call) }]);
        const { question } = fromBinary(CallSchema, toBinary(CallSchema, create(CallSchema, calls[0]))) as Call;
        if (question.case !== "management") throw new Error("it was sent as something else");
        const answer = await carryOut(fromWireManagement(question.value), deps.management);
        if (answer === undefined) throw new Error("there is no such method");
        const sent = toWireCarriedOut({ answer, changed: [] });
        if (sent.case === "charge") throw new Error("it was answered as something else");
        const told = create(AnswerSchema, { id: 1, answer: sent });
        const received = fromBinary(AnswerSchema, toBinary(AnswerSchema, told)) as Answer;
        return fromWireCarriedOut(requireAnswer(received.answer, "management")).answer;
      },
    },
  };
}
