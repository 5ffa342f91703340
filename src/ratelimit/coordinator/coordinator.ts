import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import { CoalescingLanes, type SubjectGroup, type WaitingLimit } from "../../batching/coalescing-lanes.ts";
import { commitLive, type LiveGroup } from "../../batching/commit-live.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../../store/permit-ledger.ts";
import {
  type ExchangeOptions,
  type NotExecuted,
  notExecuted,
  type OnRecall,
  type PermitAnswer,
  type PermitChannel,
} from "../permit-channel.ts";
import { Holders, type Member } from "./holders.ts";
import { boundRuns, mergeAsks, type Share, shareOut } from "./merge-asks.ts";

const asksWaitingMax = 100_000;

/**
 * Stands between replicas and the permit ledger. All waiting asks for a subject become one, and many subjects share one commit.
 * It also remembers which replicas hold a subject's permits, and recalls permits when another replica has too few. That is
 * only a hint. Correctness never depends on it, so any number of coordinators can serve one subject.
 */
export class Coordinator {
  readonly #lanes: CoalescingLanes<MemberAsk, PermitResult | NotExecuted, PermitAnswer>;
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
    const member: Member = { onRecall, isGone: false };
    return {
      exchange: (subject, ask, options) => this.#submit(subject, member, ask, options),
      inspect: (subject) => this.#inspect(subject),
      close: () => {
        member.isGone = true;
        this.#holders.leave(member);
      },
    };
  }

  /** Time since the ledger last answered. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#answeredAtMs;
  }

  drained(): Promise<void> {
    return this.#lanes.drained();
  }

  async #submit(
    subject: string,
    member: Member,
    ask: PermitAsk,
    { expiresAtMs = Number.POSITIVE_INFINITY }: ExchangeOptions = {},
  ): Promise<PermitAnswer> {
    if (this.#clock.monotonicMs() > expiresAtMs) return notExecuted;
    // Asks that bring different limits cannot be merged.
    const group = ask.brought === undefined ? subject : `${ask.brought.limit} ${subject}`;
    return this.#lanes.submit(group, { subject, member, ask, expiresAtMs, executed: undefined });
  }

  #inspect(subject: string): Promise<PermitAnswer> {
    const expiresAtMs = Number.POSITIVE_INFINITY;
    return this.#lanes.submit(subject, {
      subject,
      member: undefined,
      ask: inspection,
      expiresAtMs,
      executed: undefined,
    });
  }

  /** Decides again what is executed: asks may have waited here for longer than their replicas do. */
  #exchange(
    engine: PermitEngine,
    groups: readonly SubjectGroup<MemberAsk>[],
  ): Promise<readonly (PermitResult | NotExecuted)[]> {
    const nowMs = this.#clock.monotonicMs();
    for (const { callers } of groups) for (const { item } of callers) item.executed = executedPart(item, nowMs);
    const commit = async (live: readonly LiveGroup<MemberAsk>[]) => {
      const results = await exchangeInTurn(
        engine,
        live.map(({ items }) => {
          const { subject } = items[0] as MemberAsk;
          const asking = membersOf(items);
          const holders = asking.length === 0 ? 0 : this.#holders.count(subject, asking);
          const asks = boundRuns(items.map(executedOf));
          items.forEach((item, i) => {
            item.executed = asks[i];
          });
          return { subject, ...mergeAsks(asks, holders) };
        }),
      );
      this.#answeredAtMs = this.#clock.monotonicMs();
      return results;
    };
    return commitLive(groups, isExecuted, commit, notExecuted);
  }

  #splitResult({ callers }: SubjectGroup<MemberAsk>, result: PermitResult | NotExecuted): readonly PermitAnswer[] {
    const { subject } = (callers[0] as { readonly item: MemberAsk }).item;
    if (result.outcome !== "settled") {
      if (result.outcome === "missing") this.#holders.forget(subject);
      return callers.map(({ item }) => (isExecuted(item) ? result : notExecuted));
    }
    const asking = callers.map(({ item }) => item).filter(isExecuted);
    const shares = shareOut(asking.map(executedOf), result.granted);
    const given = shares.values();
    const answers = callers.map(({ item }) => {
      if (!isExecuted(item)) return notExecuted;
      const { member } = item;
      const ask = executedOf(item);
      const { granted } = given.next().value as Share;
      if (member === undefined) return { ...result, granted };
      this.#holders.note(subject, member, result.gen, ask, granted);
      this.#metrics.permits("granted", granted);
      this.#metrics.permits("returned", ask.returned);
      return { ...result, granted };
    });
    // What others hold can complete a cost only if there is enough of it.
    const isRecalled = shares.some(
      ({ lacking }) => lacking !== undefined && lacking <= result.left + result.outstanding,
    );
    const isInspected = asking.some(({ member }) => member === undefined);
    if ((isRecalled || isInspected) && result.outstanding > 0)
      this.#recall(subject, isInspected ? [] : membersOf(asking));
    return answers;
  }

  #recall(subject: string, except: readonly Member[]): void {
    for (const member of this.#holders.others(subject, except)) {
      this.#metrics.permits("recalled", 1);
      member.onRecall(subject);
    }
  }
}

/**
 * A subject may be asked for by several groups, with different limits: the ledger gets each subject once at a time. Nearly
 * always that is all at once.
 */
async function exchangeInTurn(engine: PermitEngine, asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
  if (new Set(asks.map(({ subject }) => subject)).size === asks.length) return engine.exchange(asks);
  const results: PermitResult[] = [];
  let waiting = asks.map((ask, i) => ({ ask, i }));
  while (waiting.length > 0) {
    const bySubject = new Map(waiting.toReversed().map((each) => [each.ask.subject, each]));
    const next = [...bySubject.values()];
    const settled = await engine.exchange(next.map(({ ask }) => ask));
    next.forEach(({ i }, at) => {
      results[i] = settled[at] as PermitResult;
    });
    waiting = waiting.filter((each) => bySubject.get(each.ask.subject) !== each);
  }
  return results;
}

interface MemberAsk {
  readonly subject: string;
  /** Undefined: nobody gets anything, the window is only inspected. */
  readonly member: Member | undefined;
  readonly ask: PermitAsk;
  readonly expiresAtMs: number;
  /** What the ledger is asked, decided when the batch is formed. Undefined: nothing. */
  executed: PermitAsk | undefined;
}

/**
 * An ask that has become too old is not executed. For a replica whose stream is closed nothing is granted, because no
 * answer reaches it; what it returned and reported counts.
 */
function executedPart({ member, ask, expiresAtMs }: MemberAsk, nowMs: number): PermitAsk | undefined {
  if (nowMs > expiresAtMs) return undefined;
  if (!member?.isGone) return ask;
  return ask.returned + ask.spent > 0 ? { ...ask, waiting: [], inAdvance: 0 } : undefined;
}

/** An ask that wants nothing, says nothing and marks nothing. */
const inspection: PermitAsk = { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 0 };

function membersOf(items: readonly MemberAsk[]): readonly Member[] {
  return items.flatMap(({ member }) => member ?? []);
}

const isExecuted = ({ executed }: MemberAsk) => executed !== undefined;
const executedOf = ({ executed }: MemberAsk) => executed as PermitAsk;

/** One limit for the asks of all subjects. One subject can use all of it: each replica has only few asks for a subject under way. */
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
