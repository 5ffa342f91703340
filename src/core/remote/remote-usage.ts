import { withTimeout } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Spend } from "../../domain/verification.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import { EndOfTurn } from "../../link/end-of-turn.ts";
import {
  type ChargeResult,
  type ChargeRun,
  runsMax,
  type SpentCounters,
  spendOf,
  type UsageLedger,
} from "../../store/usage-ledger.ts";
import { fromWireOutcome, toWireCharge } from "../wire-charges.ts";
import type { Coordinators } from "./coordinators.ts";

const tooLate = () => new Unavailable("the charge was not answered in time");

interface RemoteUsageDeps {
  readonly coordinators: Coordinators;
  readonly waitingRoom: WaitingRoom;
  readonly newDeadline: () => Deadline;
}

/**
 * Uses counters at the coordinator. All uses of a counter in one turn of the event loop become one charge, and at the
 * coordinator those of all edges. Uses with two counters gather at the one that they share. A charge whose answer is lost
 * is unknown: it is never sent again.
 */
export class RemoteUsage implements UsageLedger {
  readonly #deps: RemoteUsageDeps;
  readonly #endOfTurn = new EndOfTurn(() => this.#send());
  /** The charges of this turn in the order in which they are sent: for one subject several if it has many runs. */
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
    let charge = this.#joinable.get(subject);
    const last = charge?.runs.at(-1);
    if (charge !== undefined && last !== undefined && last.own === own && last.cost === cost) last.count++;
    else {
      if (charge === undefined || charge.runs.length >= runsMax) {
        charge = { subject, runs: [], callers: [] };
        this.#unsent.push(charge);
        this.#joinable.set(subject, charge);
      }
      charge.runs.push({ own, cost, count: 1 });
    }
    charge.callers.push(caller);
  }

  #send(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    this.#joinable.clear();
    for (const charge of unsent) void this.#charge(charge);
  }

  async #charge({ subject, runs, callers }: UnsentCharge): Promise<void> {
    const { coordinators, waitingRoom, newDeadline } = this.#deps;
    let isWanted = true;
    try {
      const called = coordinators.call(subject, toWireCharge(subject, runs), { isWanted: () => isWanted });
      const outcome = fromWireOutcome(await withTimeout(called, newDeadline(), tooLate), runs);
      if (outcome.outcome === "notExecuted")
        throw new Unavailable("the use came too late and was not charged", { nothingDone: true });
      answerCallers(callers, runs, outcome.results);
    } catch (error) {
      for (const { reject } of callers) reject(error);
    } finally {
      isWanted = false;
      waitingRoom.leave(callers.length);
      const left = (this.#waiting.get(subject) ?? 0) - callers.length;
      if (left > 0) this.#waiting.set(subject, left);
      else this.#waiting.delete(subject);
    }
  }
}

interface UnsentCharge {
  readonly subject: string;
  readonly runs: (ChargeRun & { count: number })[];
  /** The callers of all runs, in order. */
  readonly callers: Caller[];
}

interface Caller {
  readonly resolve: (spend: MaybePromise<Spend>) => void;
  readonly reject: (error: unknown) => void;
}

function answerCallers(callers: readonly Caller[], runs: readonly ChargeRun[], results: readonly ChargeResult[]): void {
  let next = 0;
  runs.forEach(({ cost, count }, i) => {
    for (let before = 0; before < count; before++)
      callers[next++]?.resolve(spendOf(results[i] as ChargeResult, cost, before));
  });
}
