import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import { CoalescingLanes, type KeyGroup, type WaitingLimit } from "../../batching/coalescing-lanes.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitEngine, PermitResult } from "../../store/permit-ledger.ts";
import type { OnRecall, PermitChannel } from "../strict/permit-channel.ts";
import { Holders, type Member } from "./holders.ts";
import { mergeAsks, shareOut } from "./merge-asks.ts";

const asksWaitingMax = 100_000;

/**
 * Stands between replicas and the permit ledger. All waiting asks for a key become one, and many keys share one commit.
 * It also remembers which replicas hold a key's permits, and recalls permits when another replica has too few. That is
 * only a hint. Correctness never depends on it, so any number of coordinators can serve one key.
 */
export class Coordinator {
  readonly #lanes: CoalescingLanes<MemberAsk, PermitResult, PermitResult>;
  readonly #holders = new Holders();
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  #answeredAtMs: number;

  constructor(engines: readonly PermitEngine[], { clock, metrics }: Pick<Ambient, "clock" | "metrics">) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#answeredAtMs = clock.monotonicMs();
    this.#lanes = new CoalescingLanes({
      name: "permits",
      commits: engines.map((engine) => (groups) => this.#exchange(engine, groups)),
      splitResult: (group, result) => this.#splitResult(group, result),
      waitingLimit: limitAsks(),
      clock,
      metrics,
    });
  }

  /** Connects a replica. `onRecall` is called when other replicas wait for permits that it holds, until it closes. */
  join(onRecall: OnRecall): PermitChannel {
    const member = { onRecall };
    return {
      exchange: (keyId, ask) => this.#lanes.submit(keyId, { member, ask }),
      close: () => this.#holders.leave(member),
    };
  }

  /** Time since the ledger last answered. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#answeredAtMs;
  }

  drained(): Promise<void> {
    return this.#lanes.drained();
  }

  async #exchange(engine: PermitEngine, groups: readonly KeyGroup<MemberAsk>[]): Promise<readonly PermitResult[]> {
    const asks = groups.map(({ keyId, callers }) => ({
      keyId,
      ...mergeAsks(callers.map(askOf), this.#holders.count(keyId, callers.map(memberOf))),
    }));
    const results = await engine.exchange(asks);
    this.#answeredAtMs = this.#clock.monotonicMs();
    return results;
  }

  #splitResult({ keyId, callers }: KeyGroup<MemberAsk>, result: PermitResult): readonly PermitResult[] {
    if (result.outcome !== "settled") {
      if (result.outcome === "missing") this.#holders.forget(keyId);
      return callers.map(() => result);
    }
    const shares = shareOut(callers.map(askOf), result.granted);
    let short = 0;
    const answers = callers.map(({ item: { member, ask } }, i) => {
      const granted = shares[i] as number;
      short += Math.max(0, ask.wantMin - granted);
      this.#holders.note(keyId, member, result.gen, ask, granted);
      this.#metrics.permits("granted", granted);
      this.#metrics.permits("returned", ask.returned);
      return { ...result, granted };
    });
    if (short > 0 && result.outstanding > 0) this.#recall(keyId, callers.map(memberOf));
    return answers;
  }

  #recall(keyId: string, short: readonly Member[]): void {
    for (const member of this.#holders.others(keyId, short)) {
      this.#metrics.permits("recalled", 1);
      member.onRecall(keyId);
    }
  }
}

interface MemberAsk {
  readonly member: Member;
  readonly ask: PermitAsk;
}

const memberOf = ({ item }: { readonly item: MemberAsk }) => item.member;
const askOf = ({ item }: { readonly item: MemberAsk }) => item.ask;

/** One limit for the asks of all keys. One key can use all of it: each replica has only few asks for a key under way. */
function limitAsks(): WaitingLimit {
  let taken = 0;
  return {
    enter() {
      if (taken >= asksWaitingMax) return new Unavailable("too many permit asks are waiting");
      taken++;
      return undefined;
    },
    leave(count) {
      taken -= count;
    },
  };
}
