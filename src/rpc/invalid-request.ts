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

  /** `textMax`: characters of all violations together. */
  constructor(violations: readonly Violation[], textMax = TEXT_MAX) {
    const reported = firstDistinct(violations, textMax);
    super([...reported.keys()].join("; "));
    this.violations = [...reported.values()];
  }
}

/** An error about one field, or about the request as a whole. */
export function invalid(path: string, message: string): InvalidRequest {
  return new InvalidRequest([{ path, message }]);
}

/** The first few, by their text, as far as an answer has room for them. Two unknown fields give the same: once is enough. */
function firstDistinct(violations: readonly Violation[], textMax: number): Map<string, Violation> {
  const reported = new Map<string, Violation>();
  let room = textMax;
  for (const violation of violations) {
    const text = printViolation(violation);
    if (reported.has(text)) continue;
    room -= text.length;
    if (reported.size > 0 && (room < 0 || reported.size === VIOLATIONS_MAX)) break;
    reported.set(text, violation);
  }
  return reported;
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
/** A JSON answer has each of them twice, within 4 KB. */
const TEXT_MAX = 1_000;

function printViolation({ path, message }: Violation): string {
  return path === "" ? `the request ${message}` : `${path}: ${message}`;
}
