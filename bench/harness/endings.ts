/** Steps that undo what was started, last first: at the end of a section, after a failure, on a signal. */
export class Endings {
  readonly #steps: (() => unknown)[] = [];

  readonly add = (step: () => unknown): void => void this.#steps.push(step);

  /** One step that fails does not keep the others from being taken. May be called again. */
  async run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        console.error(`could not be undone: ${(error as Error).message}`);
      }
    }
  }
}
