import { nextTurn } from "./next-turn.ts";

interface HeldCommit<Item, Result> {
  readonly items: readonly Item[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A commit that ends when the test says so, and remembers every batch it was given. */
export class HeldCommits<Item, Result> {
  readonly batches: (readonly Item[])[] = [];
  readonly #held: HeldCommit<Item, Result>[] = [];
  readonly #answer: (item: Item) => Result;

  constructor(answer: (item: Item) => Result) {
    this.#answer = answer;
  }

  readonly commit = (items: readonly Item[]): Promise<readonly Result[]> => {
    this.batches.push(items);
    return new Promise((resolve, reject) => {
      this.#held.push({ items, resolve, reject });
    });
  };

  get underWay(): number {
    return this.#held.length;
  }

  /** Lets the oldest batch end well, and everything that waited for it go on. */
  async finish(): Promise<void> {
    const { items, resolve } = this.#next();
    resolve(items.map(this.#answer));
    await nextTurn();
  }

  async finishWith(results: readonly Result[]): Promise<void> {
    this.#next().resolve(results);
    await nextTurn();
  }

  async fail(error: unknown): Promise<void> {
    this.#next().reject(error);
    await nextTurn();
  }

  #next(): HeldCommit<Item, Result> {
    const held = this.#held.shift();
    if (held === undefined) throw new Error("no batch is under way");
    return held;
  }
}
