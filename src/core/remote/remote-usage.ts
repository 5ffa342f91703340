import { Unavailable } from "../../domain/unavailable.ts";
import type { Spend } from "../../domain/verification.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import { type ChargeOutcome, spendOf, type UsageLedger } from "../../store/usage-ledger.ts";
import { answerOf, type ReceivedAnswer } from "../wire.ts";
import type { Coordinators } from "./coordinators.ts";
import { within } from "./within.ts";

/**
 * Uses counters at the coordinator. All uses of a subject in one turn of the event loop become one charge, and at the
 * coordinator those of all edges. A charge whose answer is lost is unknown: it is never sent again.
 */
export class RemoteUsage implements UsageLedger {
  readonly #coordinators: Coordinators;
  readonly #waitingRoom: WaitingRoom;
  readonly #timeoutMs: () => number;
  readonly #endOfTurn = new EndOfTurn(() => this.#send());
  /** The uses of this turn, by subject. */
  #unsent = new Map<string, Caller[]>();
  /** Callers that wait for an answer, by subject. */
  readonly #waiting = new Map<string, number>();

  constructor(coordinators: Coordinators, waitingRoom: WaitingRoom, timeoutMs: () => number) {
    this.#coordinators = coordinators;
    this.#waitingRoom = waitingRoom;
    this.#timeoutMs = timeoutMs;
  }

  spend(subject: string): Promise<Spend> {
    const waiting = this.#waiting.get(subject) ?? 0;
    const refusal = this.#waitingRoom.enter(waiting);
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#waiting.set(subject, waiting + 1);
    return new Promise((resolve, reject) => {
      const callers = this.#unsent.get(subject);
      if (callers === undefined) this.#unsent.set(subject, [{ resolve, reject }]);
      else callers.push({ resolve, reject });
      this.#endOfTurn.schedule();
    });
  }

  #send(): void {
    const unsent = this.#unsent;
    this.#unsent = new Map();
    for (const [subject, callers] of unsent) void this.#charge(subject, callers);
  }

  async #charge(subject: string, callers: readonly Caller[]): Promise<void> {
    let isWanted = true;
    try {
      const value = { subject, wanted: callers.length };
      const called = this.#coordinators.call(subject, { case: "charge", value }, { isWanted: () => isWanted });
      // After a time-out.
      called.catch(() => {});
      const outcome = outcomeOf(await within(this.#timeoutMs(), called, "the charge was not answered in time"));
      callers.forEach(({ resolve }, i) => {
        resolve(spendOf(i, outcome));
      });
    } catch (error) {
      for (const { reject } of callers) reject(error);
    } finally {
      isWanted = false;
      this.#waitingRoom.leave(callers.length);
      const left = (this.#waiting.get(subject) ?? 0) - callers.length;
      if (left > 0) this.#waiting.set(subject, left);
      else this.#waiting.delete(subject);
    }
  }
}

interface Caller {
  readonly resolve: (spend: Spend) => void;
  readonly reject: (error: unknown) => void;
}

function outcomeOf(received: ReceivedAnswer): ChargeOutcome {
  if (received.case === "missing") return { outcome: "missing" };
  if (received.case === "notExecuted") return { outcome: "notExecuted" };
  const { granted, remaining } = answerOf(received, "charge");
  if (!(granted >= 0)) throw new Unavailable("the coordinator has granted an impossible number");
  return { outcome: "settled", granted, remaining };
}
