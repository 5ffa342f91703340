import type { Clock } from "../../ambient/clock.ts";
import type { PermitEngine } from "../../store/permit-ledger.ts";

const probeEveryMs = 250;
/** An answer that takes longer counts as none. Longer than the round trip to a ledger on another continent. */
const answerMs = 400;

/**
 * Knows whether the permit ledger answers: from what is asked of it, and, if nothing is, from probes. The lanes
 * themselves are probed, because the ledger can be there for others and not for them.
 */
export class LedgerProbe {
  /** The lanes to use, so that their answers count. */
  readonly engines: readonly PermitEngine[];
  readonly #clock: Clock;
  #isAway = true;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** Lanes whose probe has no answer yet. */
  readonly #probed = new Set<PermitEngine>();
  readonly #timer: NodeJS.Timeout;

  /** The ledger counts as away until it has answered once. */
  constructor(engines: readonly PermitEngine[], clock: Clock) {
    this.#clock = clock;
    this.engines = engines.map((engine) => ({ exchange: (asks) => this.#noteAnswer(engine.exchange(asks)) }));
    this.#timer = setInterval(() => this.#probeAll(), probeEveryMs).unref();
    this.#probeAll();
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #probeAll(): void {
    // A recent answer says as much as a probe would.
    if (!this.#isAway && this.#clock.monotonicMs() - this.#answeredAtMs < probeEveryMs) return;
    for (const engine of this.engines) if (!this.#probed.has(engine)) this.#probe(engine);
  }

  #probe(engine: PermitEngine): void {
    const probedAtMs = this.#clock.monotonicMs();
    const judge = () => {
      if (this.#probed.has(engine) && this.#answeredAtMs < probedAtMs) this.#isAway = true;
    };
    // After what has arrived was read: a busy event loop of our own must not look like a ledger that is away.
    const timer = setTimeout(() => setImmediate(judge), answerMs).unref();
    const done = () => {
      clearTimeout(timer);
      this.#probed.delete(engine);
    };
    this.#probed.add(engine);
    engine.exchange([]).then(done, done);
  }

  async #noteAnswer<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      const answered = await answer;
      this.#isAway = false;
      this.#answeredAtMs = this.#clock.monotonicMs();
      return answered;
    } catch (error) {
      this.#isAway = true;
      throw error;
    }
  }
}
