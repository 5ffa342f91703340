/** A value that must never appear in a log, a message or a metric. Every way to print it gives `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. If a secret leaks, look at the calls of this method. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  // Node's inspector, and so the console, calls this method to print a value.
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[secret]";
  }
}
