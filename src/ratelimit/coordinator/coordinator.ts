import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import { GroupCommit } from "../../batching/group-commit.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitEngine, PermitResult } from "../../store/permit-ledger.ts";
import { laneOf } from "../../store/usage-ledger.ts";
import type { OnRecall, PermitChannel } from "../strict/permit-channel.ts";
import { Holders, type Member } from "./holders.ts";
import { mergeAsks, shareOut } from "./merge-asks.ts";

const keysPerBatchMax = 500;
const keysQueuedMax = 50_000;
const asksQueuedMax = 100_000;

/**
 * Stands between replicas and the permit ledger. All asks for a key that wait become one, and up to 500 keys share one
 * commit; each lane has one batch under way. It also knows who holds a key's permits, to ask for them when somebody is
 * short: a hint. Nothing that it knows is needed to be right: any number of coordinators may serve one key.
 */
export class Coordinator {
  readonly #lanes: readonly GroupCommit<PendingAsk, PermitResult>[];
  /** Asks not yet sent, by key: those of other replicas may still join them. */
  readonly #joinable = new Map<string, PendingAsk>();
  readonly #holders = new Holders();
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  #asksQueued = 0;
  #answeredAtMs: number;

  constructor(engines: readonly PermitEngine[], ambient: Pick<Ambient, "clock" | "metrics">) {
    this.#metrics = ambient.metrics;
    this.#clock = ambient.clock;
    this.#answeredAtMs = this.#clock.monotonicMs();
    this.#lanes = engines.map(
      (engine) =>
        new GroupCommit({
          ...ambient,
          name: "permits",
          batchMax: keysPerBatchMax,
          queueMax: keysQueuedMax,
          commit: (pending) => this.#settle(engine, pending),
        }),
    );
  }

  /** A replica comes to ask; it is told when others wait for what it holds. It leaves by closing. */
  join(onRecall: OnRecall): PermitChannel {
    const member = { onRecall };
    return {
      exchange: (keyId, ask) => this.#exchange({ member, ask }, keyId),
      close: () => this.#holders.leave(member),
    };
  }

  /** Time since the ledger last answered. */
  get silentMs(): number {
    return this.#clock.monotonicMs() - this.#answeredAtMs;
  }

  async drained(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  #exchange(asked: Pick<Part, "member" | "ask">, keyId: string): Promise<PermitResult> {
    if (this.#asksQueued >= asksQueuedMax) return Promise.reject(new Unavailable("too many permit asks are waiting"));
    this.#asksQueued++;
    return new Promise((resolve, reject) => {
      const part: Part = { ...asked, resolve, reject };
      const joinable = this.#joinable.get(keyId);
      if (joinable === undefined) this.#submit({ keyId, parts: [part] });
      else joinable.parts.push(part);
    });
  }

  #submit(pending: PendingAsk): void {
    const { keyId, parts } = pending;
    this.#joinable.set(keyId, pending);
    const lane = this.#lanes[laneOf(keyId, this.#lanes.length)] as GroupCommit<PendingAsk, PermitResult>;
    lane.submit(pending).then(
      (result) => {
        this.#asksQueued -= parts.length;
        this.#distribute(pending, result);
      },
      (error: unknown) => {
        if (this.#joinable.get(keyId) === pending) this.#joinable.delete(keyId);
        this.#asksQueued -= parts.length;
        for (const part of parts) part.reject(error);
      },
    );
  }

  async #settle(engine: PermitEngine, pending: readonly PendingAsk[]): Promise<readonly PermitResult[]> {
    const asks = pending.map(({ keyId, parts }) => {
      this.#joinable.delete(keyId);
      const members = parts.map((part) => part.member);
      const holders = this.#holders.count(keyId, members);
      return {
        keyId,
        ...mergeAsks(
          parts.map((part) => part.ask),
          holders,
        ),
      };
    });
    const results = await engine.exchange(asks);
    this.#answeredAtMs = this.#clock.monotonicMs();
    return results;
  }

  #distribute({ keyId, parts }: PendingAsk, result: PermitResult): void {
    if (result.outcome !== "settled") {
      if (result.outcome === "missing") this.#holders.forget(keyId);
      for (const part of parts) part.resolve(result);
      return;
    }
    const shares = shareOut(
      parts.map((part) => part.ask),
      result.granted,
    );
    let short = 0;
    parts.forEach(({ member, ask, resolve }, i) => {
      const granted = shares[i] as number;
      short += Math.max(0, ask.wantMin - granted);
      this.#holders.note(keyId, member, result.gen, ask, granted);
      this.#metrics.permits("granted", granted);
      this.#metrics.permits("returned", ask.returned);
      resolve({ ...result, granted });
    });
    if (short > 0 && result.outstanding > 0) this.#recall(keyId, parts);
  }

  #recall(keyId: string, short: readonly Part[]): void {
    for (const member of this.#holders.others(
      keyId,
      short.map((part) => part.member),
    )) {
      this.#metrics.permits("recalled", 1);
      member.onRecall(keyId);
    }
  }
}

interface Part {
  readonly member: Member;
  readonly ask: PermitAsk;
  readonly resolve: (result: PermitResult) => void;
  readonly reject: (error: unknown) => void;
}

interface PendingAsk {
  readonly keyId: string;
  readonly parts: Part[];
}
