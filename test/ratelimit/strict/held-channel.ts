import type { PermitAsk } from "../../../src/domain/permit-window.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { ExchangeOptions, PermitAnswer, PermitChannel } from "../../../src/ratelimit/permit-channel.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { type Settled, settledWith } from "./asks.ts";

/** A channel to the ledger that answers only when the test says so. */
export class HeldChannel implements PermitChannel {
  /** Everything that was ever sent, in order. */
  readonly sent: (PermitAsk & { readonly subject: string })[] = [];
  /** The subjects that were inspected, in order. */
  readonly inspected: string[] = [];
  isClosed = false;
  readonly #held: Held[] = [];

  exchange(subject: string, ask: PermitAsk, { onOverdue }: ExchangeOptions = {}): Promise<PermitAnswer> {
    this.sent.push({ subject, ...ask });
    return new Promise((resolve, reject) => this.#held.push({ resolve, reject, onOverdue }));
  }

  inspect(subject: string): Promise<PermitAnswer> {
    this.inspected.push(subject);
    return new Promise((resolve, reject) => this.#held.push({ resolve, reject, onOverdue: undefined }));
  }

  close(): void {
    this.isClosed = true;
  }

  get underWay(): number {
    return this.#held.length;
  }

  /** Answers the oldest message with these fields; the others are those of a ledger with many permits. */
  grant(grant: Partial<Settled> = {}): Promise<void> {
    return this.answer(settledWith(grant));
  }

  async answer(result: PermitAnswer): Promise<void> {
    this.#next().resolve(result);
    await nextTurn();
  }

  /** Says of the oldest message that its answer is late. */
  overdue(): void {
    this.#held[0]?.onOverdue?.();
  }

  /** The outcome of the oldest message stays unknown. */
  async lose(): Promise<void> {
    this.#next().reject(new Unavailable("the coordinator is away"));
    await nextTurn();
  }

  #next() {
    const held = this.#held.shift();
    if (held === undefined) throw new Error("nothing is under way");
    return held;
  }
}

interface Held {
  readonly resolve: (result: PermitAnswer) => void;
  readonly reject: (error: Unavailable) => void;
  readonly onOverdue: (() => void) | undefined;
}
