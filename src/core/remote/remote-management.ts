import { withTimeout } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import type { ForwardedAnswer, ForwardedCall } from "../../domain/forwarded-call.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { CheckRootKey, ReadHolders } from "../../store/root-access.ts";
import { type Question, requireAnswer, rootKeyMax } from "../wire.ts";
import { fromWireHolders, toWireHoldersRead } from "../wire-holders.ts";
import { type CarriedOut, fromWireCarriedOut, toWireManagement } from "../wire-management.ts";
import { fromWireVerdict } from "../wire-verdict.ts";
import type { Coordinators } from "./coordinators.ts";

export interface RemoteManagementDeps {
  readonly coordinators: Coordinators;
  /** Starts a deadline that passes after this time. */
  readonly newDeadline: (timeoutMs: number) => Deadline;
  /** Called with what a call has changed. It is answered when this resolves. */
  readonly onChanged: (changed: CarriedOut["changed"]) => Promise<void>;
  /** Called for each call that there is no room for. */
  readonly onShed?: (() => void) | undefined;
}

/** How long an answer to a question is waited for, and a call that was not sent yet. */
const beginsWithinMs = 5000;
/** A call that was begun: an API with a million keys is deleted in it. One whose coordinator is lost ends with the link. */
const endsWithinMs = 60_000;
/** Bodies that are under way. Whoever has a root key can send many. */
const bytesMax = 4 * 1024 * 1024;
const tooLate = () => new Unavailable("the coordinator has not answered in time");

/**
 * Management at a coordinator, which knows the root keys and checks the one of each call. This edge knows none. What changes
 * something is sent once: if its answer is lost, its outcome is unknown.
 */
export class RemoteManagement {
  readonly #deps: RemoteManagementDeps;
  #bytes = 0;

  constructor(deps: RemoteManagementDeps) {
    this.#deps = deps;
  }

  readonly check: CheckRootKey = async (presented) => {
    const rootKey = presented.reveal();
    if (rootKey.length > rootKeyMax) return undefined;
    const received = await this.#read("root keys", { case: "rootKey", value: { rootKey } });
    return fromWireVerdict(requireAnswer(received, "rootKey").verdict);
  };

  readonly readHolders: ReadHolders = async (rootKey, name) => {
    const key = "keyId" in name ? name.keyId : name.digest;
    return fromWireHolders(requireAnswer(await this.#read(key, toWireHoldersRead(rootKey.reveal(), name)), "holders"));
  };

  readonly carryOut = async (call: ForwardedCall, isRead: boolean): Promise<ForwardedAnswer> => {
    const { length } = call.message.bytes;
    if (this.#bytes + length > bytesMax) {
      this.#deps.onShed?.();
      throw new Unavailable("too many management calls are under way", { nothingDone: true });
    }
    this.#bytes += length;
    try {
      const { answer, changed } = await this.#send(call, isRead);
      await this.#deps.onChanged(changed);
      return answer;
    } finally {
      this.#bytes -= length;
    }
  };

  async #send(call: ForwardedCall, isRead: boolean): Promise<CarriedOut> {
    const { coordinators, newDeadline } = this.#deps;
    const begins = newDeadline(beginsWithinMs);
    const question = toWireManagement(call);
    // Any coordinator can carry it out: calls are spread over them.
    const asked = isRead
      ? coordinators.read(call.requestId, question)
      : coordinators.call(call.requestId, question, { isWanted: () => begins.leftMs > 0 });
    return fromWireCarriedOut(
      requireAnswer(await withTimeout(asked, newDeadline(endsWithinMs), tooLate), "management"),
    );
  }

  #read(key: string, question: Question) {
    return withTimeout(this.#deps.coordinators.read(key, question), this.#deps.newDeadline(beginsWithinMs), tooLate);
  }
}
