import { whenPassed } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Spend } from "../../domain/verification.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import { type ChargeResult, type SpentCounters, spendOf, type UsageLedger } from "../../store/usage-ledger.ts";
import { fromWireOutcome } from "../wire-charges.ts";
import type { Coordinators } from "./coordinators.ts";

const tooLate = () => new Unavailable("the charge was not answered in time");

interface RemoteUsageDeps {
  readonly coordinators: Coordinators;
  readonly waitingRoom: WaitingRoom;
  readonly newDeadline: () => Deadline;
}

/**
 * Uses counters at the coordinator. Equal uses of a counter that follow each other in one turn of the event loop become one
 * charge, and at the coordinator those of all edges. Uses with two counters gather at the one that they share. A charge whose
 * answer is lost is unknown: it is never sent again.
 */
export class RemoteUsage implements UsageLedger {
  readonly #deps: RemoteUsageDeps;
  readonly #endOfTurn = new EndOfTurn(() => this.#send());
  /** The charges of this turn, in the order in which they are sent. */
  #unsent: UnsentCharge[] = [];
  /** The last one of each subject. */
  readonly #joinable = new Map<string, UnsentCharge>();
  /** Callers that wait for an answer, by subject. */
  readonly #waiting = new Map<string, number>();

  constructor(deps: RemoteUsageDeps) {
    this.#deps = deps;
  }

  spend([own, shared]: SpentCounters, cost: number): Promise<Spend> {
    const subject = shared ?? own;
    const waiting = this.#waiting.get(subject) ?? 0;
    const refusal = this.#deps.waitingRoom.enter(waiting);
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#waiting.set(subject, waiting + 1);
    return new Promise((resolve, reject) => {
      this.#addCaller(subject, shared === undefined ? undefined : own, cost, { resolve, reject });
      this.#endOfTurn.schedule();
    });
  }

  #addCaller(subject: string, own: string | undefined, cost: number, caller: Caller): void {
    const last = this.#joinable.get(subject);
    if (last !== undefined && last.own === own && last.cost === cost) {
      last.callers.push(caller);
      return;
    }
    const charge = { subject, own, cost, callers: [caller], isWanted: true };
    this.#unsent.push(charge);
    this.#joinable.set(subject, charge);
  }

  /** One timer for all charges of a turn: one for each would cost as much as the charge. */
  #send(): void {
    const { coordinators, newDeadline } = this.#deps;
    const charges = this.#unsent;
    this.#unsent = [];
    this.#joinable.clear();
    let unanswered = charges.length;
    const settle = (charge: UnsentCharge, answer: () => void) => {
      if (!charge.isWanted) return;
      charge.isWanted = false;
      if (--unanswered === 0) stopTimer();
      try {
        answer();
      } catch (error) {
        rejectAll(charge, error);
      }
      this.#leave(charge);
    };
    const stopTimer = whenPassed(newDeadline(), () => {
      for (const charge of charges) settle(charge, () => rejectAll(charge, tooLate()));
    });
    for (const charge of charges) {
      const { subject, own, cost, callers } = charge;
      const run = { own, cost, count: callers.length };
      const question = { case: "charge", value: { subject, ...run } } as const;
      coordinators.call(subject, question, { isWanted: () => charge.isWanted }).then(
        (answer) => settle(charge, () => resolveAll(charge, fromWireOutcome(answer, run))),
        (error: unknown) => settle(charge, () => rejectAll(charge, error)),
      );
    }
  }

  #leave({ subject, callers }: UnsentCharge): void {
    this.#deps.waitingRoom.leave(callers.length);
    const left = (this.#waiting.get(subject) ?? 0) - callers.length;
    if (left > 0) this.#waiting.set(subject, left);
    else this.#waiting.delete(subject);
  }
}

interface UnsentCharge {
  readonly subject: string;
  readonly own: string | undefined;
  readonly cost: number;
  readonly callers: Caller[];
  /** Whether its callers still wait. */
  isWanted: boolean;
}

interface Caller {
  readonly resolve: (spend: MaybePromise<Spend>) => void;
  readonly reject: (error: unknown) => void;
}

function resolveAll({ callers, cost }: UnsentCharge, result: ChargeResult): void {
  for (const [before, { resolve }] of callers.entries()) resolve(spendOf(result, cost, before));
}

function rejectAll({ callers }: UnsentCharge, error: unknown): void {
  for (const { reject } of callers) reject(error);
}
