/**
 * Runs something once after everything else of this turn of the event loop, however often it is scheduled: so all that
 * is sent in one turn shares one message, which costs as much as dozens of calls.
 */
export class EndOfTurn {
  readonly #run: () => void;
  #isScheduled = false;

  constructor(run: () => void) {
    this.#run = run;
  }

  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#run();
    });
  }
}
