import type { PermitAsk } from "../../../src/domain/permit-window.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { PermitChannel } from "../../../src/ratelimit/strict/permit-channel.ts";
import type { PermitResult } from "../../../src/store/permit-ledger.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { type Settled, settledWith } from "./asks.ts";

/** A channel to the ledger that answers only when the test says so. */
export class HeldChannel implements PermitChannel {
  /** Everything that was ever sent, in order. */
  readonly sent: (PermitAsk & { readonly keyId: string })[] = [];
  isClosed = false;
  readonly #held: { resolve: (result: PermitResult) => void; reject: (error: Unavailable) => void }[] = [];

  exchange(keyId: string, ask: PermitAsk): Promise<PermitResult> {
    this.sent.push({ keyId, ...ask });
    return new Promise((resolve, reject) => this.#held.push({ resolve, reject }));
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

  async answer(result: PermitResult): Promise<void> {
    this.#next().resolve(result);
    await nextTurn();
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
