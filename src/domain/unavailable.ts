/**
 * The service could not decide, for example because a store does not answer or a queue is full. It says nothing about a
 * key. Retrying later can help. Unless stated otherwise it is unknown whether the requested change happened.
 */
export class Unavailable extends Error {
  override readonly name: string = "Unavailable";
  readonly retryAfterMs: number;
  /** The problem concerns one key only: other keys can still be answered. */
  readonly affectsOneKeyOnly: boolean;
  /** Nothing was taken or changed, and nothing will be: it was never begun. */
  readonly nothingDone: boolean;

  constructor(message: string, options: UnavailableOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? 1000;
    this.affectsOneKeyOnly = options.affectsOneKeyOnly ?? false;
    this.nothingDone = options.nothingDone ?? false;
  }
}

interface UnavailableOptions {
  readonly cause?: unknown;
  readonly retryAfterMs?: number;
  readonly affectsOneKeyOnly?: boolean;
  readonly nothingDone?: boolean;
}

/** A verification whose use may have been charged, or not. All others that fail have taken nothing. */
export class ChargeUnknown extends Unavailable {
  override readonly name = "ChargeUnknown";
}

const unknownCharges = new WeakMap<Unavailable, ChargeUnknown>();

/** The error of a verification whose charge failed. All callers of a batch share one. */
export function toChargeError(error: unknown): unknown {
  if (!(error instanceof Unavailable) || error.nothingDone) return error;
  const { message, retryAfterMs, affectsOneKeyOnly, cause } = error;
  const unknown = unknownCharges.get(error) ?? new ChargeUnknown(message, { cause, retryAfterMs, affectsOneKeyOnly });
  unknownCharges.set(error, unknown);
  return unknown;
}
