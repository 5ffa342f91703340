import type { Clock } from "../../ambient/clock.ts";
import { whenPassed } from "../../ambient/with-timeout.ts";
import { Deadline } from "../../domain/deadlines.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../../store/permit-ledger.ts";

const probeEveryMs = 250;
/** An answer that takes longer counts as none. Longer than the round trip to a ledger on another continent. */
const defaultAnswerMs = 400;

/**
 * Knows whether the permit ledger answers: from what is asked of it, and from probes. The lanes themselves are probed,
 * because the ledger can be there for others and not for them. They are probed when they have not answered for a while,
 * and immediately when an ask has failed: one failure alone does not show that the ledger is away.
 */
export class LedgerProbe {
  /** The lanes to use, so that their answers count. */
  readonly engines: readonly PermitEngine[];
  readonly #lanes: readonly PermitEngine[];
  readonly #clock: Clock;
  readonly #answerMs: number;
  #isAway = true;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** Lanes whose probe has no answer yet. */
  readonly #probed = new Set<PermitEngine>();
  readonly #timer: NodeJS.Timeout;

  /** The ledger counts as away until it has answered once. */
  constructor(lanes: readonly PermitEngine[], clock: Clock, answerMs = defaultAnswerMs) {
    this.#clock = clock;
    this.#answerMs = answerMs;
    this.#lanes = lanes;
    this.engines = lanes.map((lane) => ({ exchange: (asks) => this.#exchange(lane, asks) }));
    this.#timer = setInterval(() => this.#probeSilent(), probeEveryMs).unref();
    this.#probeSilent();
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #probeSilent(): void {
    // A recent answer says as much as a probe would.
    if (!this.#isAway && this.#clock.monotonicMs() - this.#answeredAtMs < probeEveryMs) return;
    for (const lane of this.#lanes) void this.#probe(lane);
  }

  async #probe(lane: PermitEngine): Promise<void> {
    if (this.#probed.has(lane)) return;
    this.#probed.add(lane);
    const probedAtMs = this.#clock.monotonicMs();
    const judge = () => {
      if (this.#probed.has(lane) && this.#answeredAtMs < probedAtMs) this.#isAway = true;
    };
    const cancel = whenPassed(new Deadline(this.#clock, this.#answerMs), judge);
    try {
      await lane.exchange([]);
      this.#noteAnswer();
    } catch {
      this.#isAway = true;
    }
    cancel();
    this.#probed.delete(lane);
  }

  async #exchange(lane: PermitEngine, asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    try {
      const results = await lane.exchange(asks);
      this.#noteAnswer();
      return results;
    } catch (error) {
      void this.#probe(lane);
      throw error;
    }
  }

  #noteAnswer(): void {
    this.#isAway = false;
    this.#answeredAtMs = this.#clock.monotonicMs();
  }
}
