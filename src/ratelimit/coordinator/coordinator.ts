import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import { KeyedBatcher } from "../../batching/keyed-batcher.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import { WaitingRoom } from "../../domain/waiting-room.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../../store/permit-ledger.ts";
import {
  type ExchangeOptions,
  notExecuted,
  type OnRecall,
  type PermitAnswer,
  type PermitChannel,
} from "../permit-channel.ts";
import { AskEntry, type AskEntryDeps } from "./ask-entry.ts";
import { Holders, type Member } from "./holders.ts";

/** For all subjects together. One subject can use all of it: each replica has only few asks for a subject under way. */
const asksWaitingMax = 100_000;

/**
 * Stands between replicas and the permit ledger. All waiting asks for a subject become one, and many subjects share one commit.
 * It also remembers which replicas hold a subject's permits, and recalls permits when another replica has too few. That is
 * only a hint. Correctness never depends on it, so any number of coordinators can serve one subject.
 */
export class Coordinator {
  readonly #batcher: KeyedBatcher<AskEntry, PermitResult>;
  readonly #entryDeps: AskEntryDeps;
  readonly #clock: Clock;
  #answeredAtMs: number;

  constructor(engines: readonly PermitEngine[], { clock, metrics }: Pick<Ambient, "clock" | "metrics">) {
    this.#entryDeps = { holders: new Holders(), places: new WaitingRoom(asksWaitingMax), metrics };
    this.#clock = clock;
    this.#answeredAtMs = clock.monotonicMs();
    this.#batcher = new KeyedBatcher({
      name: "permits",
      commits: engines.map((engine) => (batch) => this.#exchange(engine, batch)),
      take: (entry, nowMs) => entry.close(nowMs),
      clock,
      metrics,
    });
  }

  /** Connects a replica. `onRecall` is called when other replicas wait for permits that it holds, until it closes. */
  join(onRecall: OnRecall): PermitChannel {
    const member: Member = { onRecall, isGone: false };
    return {
      exchange: (subject, ask, options) => this.#submit(subject, member, ask, options),
      inspect: (subject) => this.#submit(subject, undefined, inspection),
      close: () => {
        member.isGone = true;
        this.#entryDeps.holders.leave(member);
      },
    };
  }

  /** Time since the ledger last answered. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#answeredAtMs;
  }

  drained(): Promise<void> {
    return this.#batcher.drained();
  }

  /** `member`: see `AskEntry.join`. */
  async #submit(
    subject: string,
    member: Member | undefined,
    ask: PermitAsk,
    { expiresAtMs = Number.POSITIVE_INFINITY }: ExchangeOptions = {},
  ): Promise<PermitAnswer> {
    if (this.#clock.monotonicMs() > expiresAtMs) return notExecuted;
    const refusal = this.#entryDeps.places.enter(0);
    if (refusal !== undefined) throw refusal;
    // Asks that bring different limits cannot be merged.
    const key = ask.sentRule === undefined ? subject : `${ask.sentRule.limit} ${subject}`;
    const waiting = this.#batcher.waiting(key);
    const entry = waiting ?? new AskEntry(key, subject, this.#entryDeps);
    const answer = entry.join(member, ask, expiresAtMs);
    if (waiting === undefined) this.#batcher.add(entry);
    return answer;
  }

  async #exchange(engine: PermitEngine, batch: readonly AskEntry[]): Promise<readonly PermitResult[]> {
    const asks = batch.map((entry) => entry.merge());
    const results = await exchangeInTurn(engine, asks);
    this.#answeredAtMs = this.#clock.monotonicMs();
    return results;
  }
}

/**
 * A subject may be asked for by several entries, with different limits: the ledger gets each subject once at a time. Nearly
 * always one call is enough.
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

/** An ask that wants, reports and marks nothing. */
const inspection: PermitAsk = { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 0 };
