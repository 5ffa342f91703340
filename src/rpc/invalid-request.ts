/** One thing that is wrong with a request. The message completes the sentence that the path begins. */
export interface Violation {
  /** JSON path of the field, such as `refill.amount`; empty for the request as a whole. */
  readonly path: string;
  /** What is wrong. Never holds a submitted value. */
  readonly message: string;
}

/** The request breaks a rule. Safe to show to the caller: it names fields and rules, never values. */
export class InvalidRequest extends Error {
  override readonly name = "InvalidRequest";
  readonly violations: readonly Violation[];

  constructor(violations: readonly Violation[]) {
    super(violations.slice(0, VIOLATIONS_MAX).map(printViolation).join("; "));
    this.violations = violations;
  }
}

/** Collects what is wrong with one request, so that the caller learns of it all at once. */
export class Violations {
  readonly #found: Violation[] = [];

  /** Throws as soon as the list is full: a hostile request must not keep us looking for more. */
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

/** Whether a name chosen by the caller may appear in a message: anything else could carry a misplaced secret. */
export function isPlainName(name: string): boolean {
  return name.length <= 64 && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

export function joinPath(parent: string, name: string): string {
  return parent === "" ? name : `${parent}.${name}`;
}

const VIOLATIONS_MAX = 10;

function printViolation({ path, message }: Violation): string {
  return path === "" ? `the request ${message}` : `${path}: ${message}`;
}
