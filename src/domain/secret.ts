/** A value that must never reach a log, a message or a metric: however it is printed, it prints as `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Every call of this is a place to look at when a secret leaks. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  // The name under which Node's inspector, and so the console, asks a value to print itself.
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[secret]";
  }
}
