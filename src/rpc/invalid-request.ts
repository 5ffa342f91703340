/** One thing that is wrong with a request. The message completes the sentence that the path begins. */
export interface Violation {
  /** JSON path of the field, such as `refill.amount`; empty for the request as a whole. Names of the contract only. */
  readonly path: string;
  /** What is wrong. Never holds a name or a value that was sent. */
  readonly message: string;
}

/** The request breaks a rule. Safe to show and to log: it names known fields and rules, nothing that was sent. */
export class InvalidRequest extends Error {
  override readonly name = "InvalidRequest";
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    // Two unknown fields give the same message: once is enough.
    const distinct = [...new Map(violations.map((violation) => [printViolation(violation), violation]))];
    super(
      distinct
        .slice(0, VIOLATIONS_MAX)
        .map(([text]) => text)
        .join("; "),
    );
    this.violations = distinct.map(([, violation]) => violation);
  }
}

/** Collects all problems of one request, so that the caller sees them together. */
export class Violations {
  readonly #found: Violation[] = [];

  /** Throws as soon as the list is full: a hostile request must not cost unlimited work. */
  add(path: string, message: string): void {
    this.#found.push({ path, message });
    if (this.#found.length === VIOLATIONS_MAX) this.throwIfAny();
  }

  throwIfAny(): void {
    if (this.#found.length > 0) throw new InvalidRequest(this.#found);
  }
}

/** The nesting of arrays and objects allowed in a request, the outermost included. Bounds every recursion here. */
export const DEPTH_MAX = 32;
export const TOO_DEEP = `is nested more than ${DEPTH_MAX} deep`;

export function joinPath(parent: string, name: string): string {
  return parent === "" ? name : `${parent}.${name}`;
}

const VIOLATIONS_MAX = 10;

function printViolation({ path, message }: Violation): string {
  return path === "" ? `the request ${message}` : `${path}: ${message}`;
}
